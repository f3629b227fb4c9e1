package groupledger.faults;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** The local file system, where `Faults` has a word first. Spark writes the tables' data through it. */
public final class FaultyFileSystem extends LocalFileSystem {
    @Override
    public FSDataInputStream open(Path file, int bufferSize) throws IOException {
        Faults.pass("open", file);
        return super.open(file, bufferSize);
    }

    @Override
    public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite, int bufferSize,
            short replication, long blockSize, Progressable progress) throws IOException {
        boolean torn = Faults.pass("create", file);
        FSDataOutputStream whole =
            super.create(file, permission, overwrite, bufferSize, replication, blockSize, progress);
        return torn ? new FSDataOutputStream(new Torn(whole), null) : whole;
    }

    @Override
    public boolean rename(Path source, Path target) throws IOException {
        Faults.pass("rename", target);
        boolean done = super.rename(source, target);
        Faults.pass("renamed", target);
        return done;
    }
}
