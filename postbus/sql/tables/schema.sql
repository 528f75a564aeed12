-- postbus: the functions that users call. postbus_data: everything stored, and what only Postbus calls.
do $$
begin
    -- In another encoding most messages could not be stored, and in SQL_ASCII nobody could say what they mean.
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
