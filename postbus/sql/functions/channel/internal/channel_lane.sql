create or replace function postbus_data.channel_lane(partition integer)
returns integer
language sql
immutable parallel safe
as $$
/* Which redelivery log the retries of a partition are in, for a consumer by channel. They stay there until their channel's turn. Written to be inlined. */
    select -1 - partition
$$;
