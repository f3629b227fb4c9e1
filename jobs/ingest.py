"""Run `groupledger ingest` from a checkout with spark-submit; `groupledger job-file` names the installed script.

spark-submit --jars "$(groupledger jars)" jobs/ingest.py --config conf/cluster.yaml
"""

import sys

from groupledger.cli import main

if __name__ == "__main__":
    main(["ingest", *sys.argv[1:]])
