//! Maps.

#![allow(unsafe_code, reason = "exported names")]

use super::{
    call::{CallError, call, run},
    tables::table_calls,
    types::{Element, Pair, Table, TableIt, address, bytes, key, pair, rank},
};
use core::ffi::c_int;

type Keys = acp::Map<[u8], [u8]>;

table_calls! {
    Keys,
    create: acp_create_map,
    destroy: acp_destroy_map,
    clear: acp_clear_map,
    clear_local: acp_clear_local_map,
    empty: acp_empty_map,
    empty_local: acp_empty_local_map,
    size: acp_size_map,
    size_local: acp_size_local_map,
    assign: acp_assign_map,
    assign_local: acp_assign_local_map,
    merge: acp_merge_map,
    merge_local: acp_merge_local_map,
    move: acp_move_map,
    move_local: acp_move_local_map,
    swap: acp_swap_map,
    begin: acp_begin_map,
    end: acp_end_map,
    begin_local: acp_begin_local_map,
    end_local: acp_end_local_map,
    find: acp_find_map,
    increment: acp_increment_map_it,
}

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_dereference_map_it(it: TableIt) -> Pair {
    call("acp_dereference_map_it", Pair::default(), async |acp| {
        Ok(pair(&Keys::from_address(acp, it.table.place()?).await?.entry(it.position()?).await?))
    })
}

/// Returns 1 if the key is new; otherwise it keeps its value.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_map(table: Table, pair: Pair) -> c_int {
    call("acp_insert_map", 0, async |acp| {
        let (key, value) = (key(acp, pair.first).await?, bytes(acp, pair.second).await?);
        Ok(c_int::from(Keys::from_address(acp, table.place()?).await?.insert(&key, &value).await?))
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_remove_map(table: Table, element: Element) {
    run("acp_remove_map", async |acp| {
        let key = key(acp, element).await?;
        Ok(Keys::from_address(acp, table.place()?).await?.remove(&key).await.map(drop)?)
    });
}

/// Copies the value of a key, truncated to the size given; returns the size of the whole value.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_retrieve_map(table: Table, pair: Pair) -> usize {
    call("acp_retrieve_map", 0, async |acp| {
        let key = key(acp, pair.first).await?;
        let Some(value) = Keys::from_address(acp, table.place()?).await?.get(&key).await? else { return Ok(0) };
        let copied = &value[..value.len().min(pair.second.size)];
        if !copied.is_empty() {
            acp.write(address(pair.second.ga)?, copied).await?;
        }
        Ok(value.len())
    })
}
