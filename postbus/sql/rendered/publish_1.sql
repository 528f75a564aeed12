-- Made from ../templates by `make generate`, for stream 1 with 8 partitions and segment 1; do not edit.
CREATE OR REPLACE FUNCTION postbus_data.publish_1(key text, data text, headers jsonb)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to(key, 'UTF8'::name));
    seq bigint;
begin
    if false
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared(1073741825, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_1'::regclass)))
                else postbus_data.lock_horizon(1, 'postbus_data.seq_1'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_1'::regclass) = 34359738376::bigint) is not true
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= 8388608) is not true
        or headers is not null
    then
        return postbus.publish('orders', key, data => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_1'::regclass);
    if pg_sequence_last_value('postbus_data.layout_1'::regclass) <> 34359738376::bigint then
        -- See publish. This number stays unused.
        return postbus.publish('orders', key, data => data);
    end if;
    insert into postbus_data.log_1_1 (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        0 + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), 8), mod(seq, 8::bigint)::integer),
        key,
        data::json
    );
    return seq;
end
$function$;
