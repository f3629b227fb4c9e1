package groupledger.faults;

import java.io.IOException;
import java.io.OutputStream;

/** Lets a few bytes through, then the disk is full. */
final class Torn extends OutputStream {
    private static final int WHOLE_BYTES = 64;
    private final OutputStream target;
    private int left = WHOLE_BYTES;

    Torn(OutputStream target) {
        this.target = target;
    }

    @Override
    public void write(int value) throws IOException {
        if (left-- <= 0) {
            throw new IOException("No space left on device (injected after " + WHOLE_BYTES + " bytes)");
        }
        target.write(value);
    }

    @Override
    public void close() throws IOException {
        target.close();
    }
}
