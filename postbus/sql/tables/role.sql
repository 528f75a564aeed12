-- A row allows a role to publish to a stream, to consume it or to read it; a null stream means all streams.
create table postbus_data.stream_grant (
    stream_id integer references postbus_data.stream on delete cascade,
    role text collate "C" not null,
    may text collate "C" not null check (may in ('publish', 'consume', 'read')),
    unique nulls not distinct (stream_id, role, may)
);

-- As for history.
alter table postbus_data.stream_grant replica identity full;

-- The one row is the secret with which this database signs the names of callers, and by which functions recognize them.
create table postbus_data.caller_key (
    singleton boolean primary key default true check (singleton),
    secret bytea not null
);
insert into postbus_data.caller_key (secret)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- The caller of a function: a role, and a signature that only this database can make, valid in one transaction of one session.
-- Functions that act with the rights of their owner take it as their last argument, because to them the current user is that
-- owner. Omit the argument: its default is right.
create type postbus.caller as (
    role text,
    signature bytea
);

-- The caller, as seen by the role that selects from it. A view reads tables with its owner's rights but evaluates current_user
-- as the role that uses it. The signed text begins with parts of fixed length and ends with the secret, so that no signature
-- can be extended to that of another role.
create view postbus_data.current_caller with (security_barrier) as
select
    row(
        current_user::text,
        sha256(
            k.secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || convert_to(current_user::text, 'UTF8')
            || k.secret
        )
    )::postbus.caller as caller
from postbus_data.caller_key as k;
