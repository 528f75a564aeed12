create or replace function postbus_data.report_push(consumer_id integer, report jsonb)
returns table (rest_seconds double precision, is_paused boolean)
language plpgsql
volatile
as $$
/*
Record how requests to an endpoint went, and decide whether it rests.

It rests after five failures in a row of different messages, after it could not be reached three times in a row, when half of ten or more
requests within a minute failed, or when it asked for that. A rest takes 5 s, then 10 s, … up to 5 minutes; then one request is sent,
and if that fails it rests again. It is paused when nothing has succeeded for 5 days, or for a reason that the report gives.

report  successes: how many succeeded since the last report; failures; failed_seqs: the messages that failed since the last success; unreachable:
        how often it was not reached since then; error: the last one; rest: how many seconds it asked for; is_probe: this was the one request after a rest; pause: why nothing more may be sent to it;
        attempts: what push_attempt holds, durations in seconds and answers in base64.

Returns  for how many seconds it rests (0: it does not), and whether it is paused.
Touches  push_state (insert, delete), push_attempt (insert), push, waiting (update).
Locks    the endpoint's mutex, if what is known of it changes.
*/
#variable_conflict use_variable
declare
    now_at timestamptz := clock_timestamp();
    state postbus_data.push_state;
    successes integer := coalesce((report ->> 'successes')::integer, 0);
    failures integer := coalesce((report ->> 'failures')::integer, 0);
    is_probe boolean := coalesce((report ->> 'is_probe')::boolean, false);
    asked_for double precision := (report ->> 'rest')::double precision;
    why text;
begin
    if report ? 'attempts' then
        perform postbus_data.add_push_attempts(consumer_id, report -> 'attempts');
    end if;
    state := postbus_data.push_state_of(consumer_id);
    if failures > 0 or is_probe or asked_for is not null or report ? 'pause' or state.window_failures > 0 or cardinality(state.failed_seqs) > 0
        or state.unreachable_count > 0 or state.last_success_at is null or state.last_success_at < now_at - interval '10 seconds'
    then
        state := postbus_data.lock_push_state(consumer_id);
        if (state.window_started_at > now_at - interval '1 minute') is not true then
            state.window_started_at := now_at;
            state.window_requests := 0;
            state.window_failures := 0;
        end if;
        state.window_requests := state.window_requests + successes + failures;
        state.window_failures := state.window_failures + failures;
        if successes > 0 then
            state.failed_seqs := '{}';
            state.unreachable_count := 0;
            state.first_failure_at := null;
            state.last_success_at := now_at;
            if is_probe then
                state.rests_until := null;
                state.rest_reason := null;
                state.rest_count := 0;
                state.window_requests := 0;
                state.window_failures := 0;
                -- Former ones were put off until after this one.
                update postbus_data.waiting as w
                set due_at = now_at
                where w.consumer_id + 0 = consumer_id
                    and w.due_at > now_at
                    and w.due_at < now_at + interval '10 minutes'
                    and w.reason like 'probe: %';
            end if;
        end if;
        if failures > 0 then
            state.first_failure_at := coalesce(state.first_failure_at, now_at);
            state.last_failure_at := now_at;
            state.last_error := left(report ->> 'error', 500);
            state.failed_seqs := array(
                select distinct f.seq
                from (
                    select unnest(state.failed_seqs)
                    union all
                    select q.seq::bigint from jsonb_array_elements_text(coalesce(report -> 'failed_seqs', '[]')) as q (seq)
                ) as f (seq)
                order by f.seq
                limit 5
            );
            state.unreachable_count := state.unreachable_count + coalesce((report ->> 'unreachable')::integer, 0);
            why := case
                when is_probe then 'it still fails'
                when state.unreachable_count >= 3 then 'it cannot be reached'
                when cardinality(state.failed_seqs) >= 5 then 'five messages in a row failed'
                when state.window_requests >= 10 and 2 * state.window_failures >= state.window_requests then 'half of its requests fail'
            end;
        end if;
        if is_probe then
            state.probe_until := null;
        end if;
        if asked_for is not null then
            state.rests_until := greatest(state.rests_until, now_at + make_interval(secs => asked_for));
            state.rest_reason := 'it asked to be left alone';
        elsif why is not null and (is_probe or state.rests_until is null) then
            state.rest_count := state.rest_count + 1;
            -- With a factor from 0.8 to 1.2, so that not all endpoints of a host are tried at once.
            state.rests_until := now_at
                + least(interval '5 seconds' * 2 ^ least(state.rest_count - 1, 10), interval '5 minutes') * (0.8 + 0.4 * random());
            state.rest_reason := concat_ws(': ', why, state.last_error);
        end if;
        perform postbus_data.store_push_state(state);
        if report ? 'pause' or state.first_failure_at < now_at - interval '5 days' then
            update postbus_data.push as p
            set paused_reason = coalesce(left(report ->> 'pause', 500), 'nothing has succeeded for 5 days'),
                version = p.version + 1
            where p.consumer_id = consumer_id
                and p.paused_reason is null;
        end if;
    end if;
    rest_seconds := case when state.rests_until is null then 0 else greatest(extract(epoch from state.rests_until - now_at), 0.001) end;
    is_paused := exists (select from postbus_data.push as p where p.consumer_id = consumer_id and p.paused_reason is not null);
    return next;
end
$$;
