"""A storm: many processes write one local ledger at once and are killed; then it must hold what a quiet one holds."""
