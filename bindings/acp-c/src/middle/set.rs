//! Sets.

#![allow(unsafe_code, reason = "exported names")]

use super::{
    call::{CallError, call, run},
    tables::table_calls,
    types::{Element, Table, TableIt, key, pair, rank},
};
use core::ffi::c_int;

type Keys = acp::Set<[u8]>;

table_calls! {
    Keys,
    create: acp_create_set,
    destroy: acp_destroy_set,
    clear: acp_clear_set,
    empty: acp_empty_set,
    empty_local: acp_empty_local_set,
    size: acp_size_set,
    size_local: acp_size_local_set,
    assign: acp_assign_set,
    assign_local: acp_assign_local_set,
    merge: acp_merge_set,
    merge_local: acp_merge_local_set,
    move: acp_move_set,
    move_local: acp_move_local_set,
    swap: acp_swap_set,
    begin: acp_begin_set,
    end: acp_end_set,
    begin_local: acp_begin_local_set,
    end_local: acp_end_local_set,
    find: acp_find_set,
    increment: acp_increment_set_it,
    dereference: acp_dereference_set_it,
    insert: acp_insert_set,
}

/// Returns 1 if the key is new.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_set(table: Table, element: Element) -> c_int {
    c_int::from(inserted(table, element) == Some(true))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_remove_set(table: Table, element: Element) {
    run("acp_remove_set", async |acp| {
        let key = key(acp, element).await?;
        Ok(Keys::from_address(acp, table.place()?).await?.remove(&key).await.map(drop)?)
    });
}
