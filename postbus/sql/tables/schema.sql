-- postbus: the functions that users call. postbus_data: all tables, and internal functions.
do $$
begin
    -- Other encodings cannot store most messages, and in SQL_ASCII the meaning of bytes is unknown.
    if getdatabaseencoding() <> 'UTF8' then
        raise exception using
            errcode = 'PB505',
            message = format('the encoding of database "%s" is %s, and Postbus needs UTF8', current_database(), getdatabaseencoding()),
            hint = 'make another, and name that: create database postbus encoding ''UTF8'' template template0';
    end if;
end
$$;

create schema postbus;
create schema postbus_data;
