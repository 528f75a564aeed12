-- A row is one numbered step that this database has taken, by a fresh install (which takes them all at once) or an upgrade.
create table postbus_data.migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- The one row says which text the functions were made from, so that code and database can be compared on connect.
create table postbus_data.installation (
    singleton boolean primary key default true check (singleton),
    functions_digest text not null
);
