"""Which stores are safe for several writers is told from where a ledger lies and what is configured."""

from pathlib import Path

import pytest

from groupledger.pipeline.doctor import mounted_as, writers

DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
ONE = "io.delta.storage.S3SingleDriverLogStore"


@pytest.mark.parametrize(
    ("scheme", "file_system", "log_store", "several"),
    [
        *(("file", kind, None, True) for kind in ("ext4", "xfs", "overlay", "tmpfs", "btrfs", "zfs", "fuseblk", None)),
        *(("file", kind, None, False) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "lustre", "ceph")),
        *(("file", kind, None, False) for kind in ("fuse", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs")),
        ("file", "nfs4", DYNAMO, False),
        *((scheme, None, None, False) for scheme in ("s3", "s3a", "s3n")),
        ("s3a", None, DYNAMO, True),
        ("s3a", None, ONE, False),
        *((scheme, None, None, True) for scheme in ("hdfs", "abfss", "gs", "wasbs")),
        ("cosn", None, None, False),
        ("cosn", None, "io.delta.storage.IBMCOSLogStore", True),
        ("", None, None, False),
    ],
)
def test_which_stores_take_several_writers(scheme, file_system, log_store, several):
    found = writers(scheme, file_system, log_store)
    assert (found.several, bool(found.advice)) == (several, not several)
    named = [word in found.advice for word in (DYNAMO, "io.delta:delta-storage-s3-dynamodb", "ddb.tableName")]
    assert named == [scheme in ("s3", "s3a", "s3n") and not several] * 3


MOUNTS = r"""overlay / overlay rw 0 0
server:/a /data nfs4 rw 0 0
tmpfs /data/with\040blank tmpfs rw 0 0
host:/b /twice nfs rw 0 0
/dev/sda1 /twice ext4 rw 0 0
odd
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "overlay"),
        ("/database/ledger", "overlay"),
        ("/data", "nfs4"),
        ("/data/ledger", "nfs4"),
        ("/data/with blank/ledger", "tmpfs"),
        ("/twice/ledger", "ext4"),
    ],
)
def test_the_innermost_mount_says_what_a_folder_lies_on(folder, kind):
    assert mounted_as(Path(folder), MOUNTS) == kind


def test_without_mounts_nothing_is_known():
    assert mounted_as(Path("/data"), "") is None
