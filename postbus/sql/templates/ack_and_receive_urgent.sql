    -- Urgent messages go first. They are counted when they are published, so that most receives need not look for any: what was counted is noted when
    -- all of it has been taken.
    if reader.id is not null and not reader.is_group and (
        reader.ageing is not null
        or pg_sequence_last_value('postbus_data.urgent_{stream_id}'::regclass) > coalesce(
            (
                select u.read_to_count
                from postbus_data.urgent_position as u
                where u.consumer_id = reader.id
                    and u.epoch = reader.epoch
                order by u.read_to_count desc
                limit 1
            ),
            0
        )
        -- Failed ones that are due. In order "key" they wait where they failed. A call in the condition would keep it from the index.
        or case
            when reader.is_keyed then exists (
                select
                from postbus_data.waiting as w
                where w.consumer_id + 0 = reader.id
                    and w.due_at <= reader.now_at
                    and w.partition >= 500000000
            )
            else {has_urgent_due}
        end
    )
    then
        return query
        select acked, b.*
        from postbus_data.receive_with_decisions(
            postbus_data.find_consumer({stream_name}, consumer), max_messages, ack_wait, expected_type, by_position, null
        ) as b;
        if not found then
            lease := null;
            return next;
        end if;
        return;
    end if;

