package groupledger.faults;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Options.ChecksumOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** The same for Delta's log, which is written through Hadoop's other interface: a temporary file, then renamed. */
public final class FaultyLocalFs extends DelegateToFileSystem {
    public FaultyLocalFs(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(uri, new RawLocalFileSystem(), configuration, "file", false);
    }

    @Override
    public FSDataOutputStream createInternal(Path file, EnumSet<CreateFlag> flag, FsPermission permission,
            int bufferSize, short replication, long blockSize, Progressable progress, ChecksumOpt checksum,
            boolean createParent) throws IOException {
        boolean torn = Faults.pass("create", file);
        FSDataOutputStream whole = super.createInternal(file, flag, permission, bufferSize, replication, blockSize,
            progress, checksum, createParent);
        return torn ? new FSDataOutputStream(new Torn(whole), null) : whole;
    }

    @Override
    public void renameInternal(Path source, Path target) throws IOException {
        Faults.pass("rename", target);
        super.renameInternal(source, target);
        Faults.pass("renamed", target);
    }
}
