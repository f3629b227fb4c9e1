"""Run the command `groupledger ingest` with spark-submit, which needs the jars that Spark lacks:

spark-submit --jars "$(groupledger jars)" jobs/ingest.py --config conf/cluster.yaml
"""

import sys

from groupledger.cli import main

if __name__ == "__main__":
    main(["ingest", *sys.argv[1:]])
