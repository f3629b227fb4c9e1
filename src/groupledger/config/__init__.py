"""Read the configuration, and describe it.

Read `settings` (all keys), `loading` (files, environment, messages, the page of them), then
`kafka_options` (clients' options, and secrets in them). Called by `cli` and the jobs.
"""

from groupledger.config.loading import load as load
from groupledger.config.loading import parse as parse
from groupledger.config.settings import AssignSettings as AssignSettings
from groupledger.config.settings import Config as Config
from groupledger.config.settings import ConfigFault as ConfigFault
from groupledger.config.settings import LedgerSettings as LedgerSettings
from groupledger.config.settings import LimitSettings as LimitSettings
from groupledger.config.settings import MaintainSettings as MaintainSettings
from groupledger.config.settings import OverrideSettings as OverrideSettings
from groupledger.config.settings import RedactionSettings as RedactionSettings
from groupledger.config.settings import RetentionSettings as RetentionSettings
from groupledger.config.settings import SourceSettings as SourceSettings
from groupledger.config.settings import SparkSettings as SparkSettings
