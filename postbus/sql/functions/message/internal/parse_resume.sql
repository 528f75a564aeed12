create or replace function postbus_data.parse_resume(resume text, stream_id integer, backwards boolean)
returns bigint
language plpgsql
immutable
as $$
/* The position in a resume token of read. Raises PB400 for an invalid token, or one of another stream or direction. */
declare
    direction text := case when backwards then 'b' else 'f' end;
begin
    if resume !~ '^[fb]:[0-9]{1,9}:[0-9]{1,18}$' then
        raise exception using errcode = 'PB400', message = format('"%s" is not a resume token', left(resume, 80));
    end if;
    if split_part(resume, ':', 2)::integer <> stream_id then
        raise exception using errcode = 'PB400', message = 'the resume token belongs to another stream';
    end if;
    if split_part(resume, ':', 1) <> direction then
        raise exception using
            errcode = 'PB400',
            message = 'the resume token belongs to a read in the other direction';
    end if;
    return split_part(resume, ':', 3)::bigint;
end
$$;
