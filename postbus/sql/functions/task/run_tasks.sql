create or replace function postbus.run_tasks(max_messages integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Do one step of each task that runs in the background: move at most max_messages messages of it, and no more than its rate allows. Whoever
does the upkeep calls it again and again. A task is worked on by one caller at a time; others pass it over.

A step and its count are one transaction: when it is rolled back, nothing was moved. A task whose step fails ends, and says why. A task
that ended more than a week ago is removed.

Returns  how many messages were moved; 0 if nothing is to be done now.
Touches  task (update, delete); as redrive, discard, replay and move_messages.
Locks    the rows of the tasks until the transaction ends.
*/
#variable_conflict use_variable
declare
    task postbus_data.task;
    reader postbus_data.consumer;
    now_at timestamptz := clock_timestamp();
    page integer;
    moved integer;
    next_resume text;
    chosen bigint[];
    last_seq bigint;
    ended boolean;
    total integer := 0;
begin
    if (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    for task in
        select t.* from postbus_data.task as t where t.state = 'running' order by t.id for update skip locked
    loop
        page := max_messages;
        if task.rate is not null then
            -- What was not used for more than a second, or until one message was due, is lost: there are no bursts.
            task.paced_at := greatest(task.paced_at, now_at - make_interval(secs => greatest(1, 1 / task.rate)));
            page := least(page, floor(task.rate * extract(epoch from now_at - task.paced_at)));
            continue when page < 1;
        end if;
        select c.* into reader from postbus_data.consumer as c where c.id = task.consumer_id;
        begin
            ended := false;
            if task.kind = 'replay' then
                select r.replayed, r.next_resume
                into moved, next_resume
                from postbus.replay(
                    reader.stream_name, reader.name, from_seq => task.from_seq, to_seq => task.to_seq, from_time => task.from_time,
                    to_time => task.to_time, key_pattern => task.key_pattern, max_messages => page, resume => task.resume
                ) as r;
                ended := next_resume is null;
            elsif task.kind = 'move' then
                moved := postbus_data.move_messages(reader, task.to_stream, page);
                ended := moved is null;
                moved := coalesce(moved, 0);
            else
                -- By seq, so that none comes twice: what is redriven may die again.
                select array_agg(d.seq) filter (where d.died_at <= task.created_at), max(d.seq)
                into chosen, last_seq
                from postbus_data.match_dead(
                    reader.id, null, task.key_pattern, task.reason_like, coalesce(task.resume::bigint, 0), page
                ) as d;
                ended := last_seq is null;
                next_resume := last_seq;
                moved := case
                    when chosen is null then 0
                    when task.kind = 'redrive' then
                        postbus.redrive(reader.stream_name, reader.name, seqs => chosen, max_messages => page, to_stream => task.to_stream)
                    else postbus.discard(reader.stream_name, reader.name, seqs => chosen, max_messages => page)
                end;
            end if;
            update postbus_data.task as t
            set done_count = t.done_count + moved,
                resume = next_resume,
                noted_at = now_at,
                paced_at = case when t.rate is null then now_at else task.paced_at + make_interval(secs => moved / t.rate) end,
                state = case when ended then 'done' else 'running' end,
                ended_at = case when ended then now_at end
            where t.id = task.id;
            -- A step may have moved nothing, and there is more.
            total := total + greatest(moved, case when ended or task.kind = 'move' then 0 else 1 end);
        exception
            -- A lock or a conflict passes; the step is tried again.
            when lock_not_available or deadlock_detected or serialization_failure or query_canceled then
                continue;
            when others then
                update postbus_data.task as t
                set state = 'failed', last_error = left(sqlerrm, 1000), noted_at = now_at, ended_at = now_at
                where t.id = task.id;
        end;
    end loop;
    if exists (select from postbus_data.task as t where t.ended_at < now_at - interval '7 days') then
        delete from postbus_data.task as t where t.ended_at < now_at - interval '7 days';
    end if;
    return total;
end
$$;
