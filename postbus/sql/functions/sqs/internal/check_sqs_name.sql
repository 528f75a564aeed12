create or replace function postbus_data.check_sqs_name(name text)
returns void
language plpgsql
immutable
as $$
/* Refuse what is not a name of a queue of SQS (PB400). */
begin
    if (name ~ '^[A-Za-z0-9_-]+([.]fifo)?$' and length(name) <= 80) is not true then
        raise exception using
            errcode = 'PB400', message = format('queue name %s is not allowed', coalesce('"' || left(name, 90) || '"', 'null')),
            hint = 'use 1 to 80 letters, digits, "_" or "-"; the name of a FIFO queue ends in ".fifo"';
    end if;
end
$$;
