-- The one row says which process of the library does the upkeep, and when somebody last maintained the logs.
create table postbus_data.upkeep (
    singleton boolean primary key default true check (singleton),
    -- A name that the process has made up; null until one has taken the upkeep.
    holder uuid,
    -- When it last said that it goes on.
    held_at timestamptz,
    -- When `maintain` last looked after all streams, whoever called it; up to a minute earlier while there is a holder. Null: never.
    maintained_at timestamptz,
    created_at timestamptz not null default clock_timestamp()
);
insert into postbus_data.upkeep default values;
