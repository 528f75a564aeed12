create or replace function postbus_data.merge_answers(answers bigint[], seqs bigint[])
returns bigint[]
language sql
immutable
as $$
/* The result of a publish for each message: answers, with seqs in place of the nulls, in their order. */
    select array_agg(
        case when a.answer is null then seqs[a.nth] else a.answer end order by a.place
    )
    from (
        select a.answer, a.place, count(*) filter (where a.answer is null) over (order by a.place) as nth
        from unnest(answers) with ordinality as a (answer, place)
    ) as a
$$;
