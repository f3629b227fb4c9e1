package groupledger.faults;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.AccessControlException;

/**
 * What the file systems here ask before every operation below a folder: nothing is wrong, or one thing is, once.
 *
 * A place is "operation table kind number": the number-th time that the operation meets a file of that kind (data, log,
 * crc, checkpoint) of that table since `watch`. What happens there: "kill" ends this process with signal 9 after the one
 * that `victim` names; "full", "denied" and "torn" fail the operation; "torn" lets the first bytes through.
 */
public final class Faults {
    private static String folder;
    private static String place;
    private static String action;
    private static long victim;
    private static boolean struck;
    private static final Map<String, Integer> COUNTS = new HashMap<>();
    private static final List<String> TRACE = new ArrayList<>();

    private Faults() {
    }

    /** Forget everything, and look from now on at the files below the folder. */
    public static synchronized void watch(String below) {
        folder = below;
        place = null;
        struck = false;
        COUNTS.clear();
        TRACE.clear();
    }

    /** Let one thing happen at a place. */
    public static synchronized void arm(String where, String what, long process) {
        place = where;
        action = what;
        victim = process;
    }

    /** Every place that was passed since `watch`, in order. */
    public static synchronized String trace() {
        return String.join("\n", TRACE);
    }

    /** Whether the thing has happened. */
    public static synchronized boolean struck() {
        return struck;
    }

    /** Pass a place; true where the bytes about to be written are to be torn. */
    static synchronized boolean pass(String operation, Path path) throws IOException {
        String file = path.toUri().getPath();
        if (folder == null || !file.startsWith(folder)) {
            return false;
        }
        String name = operation + " " + described(file.substring(folder.length() + 1));
        int number = COUNTS.merge(name, 1, Integer::sum);
        String here = name + " " + number;
        TRACE.add(here);
        if (struck || !here.equals(place)) {
            return false;
        }
        struck = true;
        switch (action) {
            case "kill":
                kill();
                return false;
            case "full":
                throw new IOException("No space left on device (injected): " + path);
            case "denied":
                throw new AccessControlException("Permission denied (injected): " + path);
            default:
                return true;
        }
    }

    /** As `pass`, for writers that are not in this JVM. */
    public static boolean pass_(String operation, Path path) throws IOException {
        return pass(operation, path);
    }

    private static String described(String file) {
        int slash = file.indexOf('/');
        String table = slash < 0 ? file : file.substring(0, slash);
        String kind = "folder";
        if (file.contains("checkpoint")) {
            kind = "checkpoint";
        } else if (file.endsWith(".crc") || file.contains(".crc.")) {
            kind = "crc";
        } else if (file.contains(".json")) {
            kind = "log";
        } else if (file.endsWith(".parquet")) {
            kind = "data";
        }
        return table + " " + kind;
    }

    private static void kill() {
        ProcessHandle.of(victim).ifPresent(process -> signal(process.pid()));
        signal(ProcessHandle.current().pid());
        while (true) {
            Thread.onSpinWait();
        }
    }

    private static void signal(long process) {
        try {
            new ProcessBuilder("kill", "-9", Long.toString(process)).start().waitFor();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
