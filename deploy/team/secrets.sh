#!/bin/sh
# Writes the passwords and addresses that compose.yaml hands to the services. Existing ones stay.
set -eu
umask 022 # the containers' own users read them; the folder keeps other users of this machine out
cd "$(dirname "$0")"
mkdir -p -m 0700 secrets
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
new() { [ -s "secrets/$1" ] || printf '%s' "$2" >"secrets/$1"; }
new dragoman_key "$(random)"
new postgres_password "$(random)"
new valkey_password "$(random)"
new store "postgresql://dragoman:$(cat secrets/postgres_password)@postgres/dragoman"
new redis "redis://:$(cat secrets/valkey_password)@valkey:6379/0"
