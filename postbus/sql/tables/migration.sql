-- A row is one numbered step that this database has taken, in a fresh install (which takes all of them at once) or an upgrade.
create table postbus_data.migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- The one row has a digest of the functions' text, so that the library can compare code and database when it connects.
create table postbus_data.installation (
    singleton boolean primary key default true check (singleton),
    functions_digest text not null
);
