//! Multisets.

#![allow(unsafe_code, reason = "exported names")]

use super::{
    call::{CallError, call, run},
    tables::table_calls,
    types::{Element, Table, TableIt, key, pair, rank},
};
use core::ffi::c_int;

type Keys = acp::Multiset<[u8]>;

table_calls! {
    Keys,
    create: acp_create_multiset,
    destroy: acp_destroy_multiset,
    clear: acp_clear_multiset,
    empty: acp_empty_multiset,
    empty_local: acp_empty_local_multiset,
    size: acp_size_multiset,
    size_local: acp_size_local_multiset,
    assign: acp_assign_multiset,
    assign_local: acp_assign_local_multiset,
    merge: acp_merge_multiset,
    merge_local: acp_merge_local_multiset,
    move: acp_move_multiset,
    move_local: acp_move_local_multiset,
    swap: acp_swap_multiset,
    begin: acp_begin_multiset,
    end: acp_end_multiset,
    begin_local: acp_begin_local_multiset,
    end_local: acp_end_local_multiset,
    find: acp_find_multiset,
    increment: acp_increment_multiset_it,
    dereference: acp_dereference_multiset_it,
    insert: acp_insert_multiset,
}

/// Returns 1 if the key was counted, whether or not it is new.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_multiset(table: Table, element: Element) -> c_int {
    c_int::from(inserted(table, element).is_some())
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_remove_multiset(table: Table, element: Element) {
    run("acp_remove_multiset", async |acp| {
        let key = key(acp, element).await?;
        Ok(Keys::from_address(acp, table.place()?).await?.remove(&key).await.map(drop)?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_remove_all_multiset(table: Table, element: Element) {
    run("acp_remove_all_multiset", async |acp| {
        let key = key(acp, element).await?;
        Ok(Keys::from_address(acp, table.place()?).await?.remove_all(&key).await.map(drop)?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_retrieve_multiset(table: Table, element: Element) -> u64 {
    call("acp_retrieve_multiset", 0, async |acp| {
        let key = key(acp, element).await?;
        Ok(Keys::from_address(acp, table.place()?).await?.count(&key).await?)
    })
}
