-- postbus: the functions that users call. postbus_data: everything stored, and what only Postbus calls.
create schema postbus;
create schema postbus_data;
