//! The calls that sets, multisets and maps share.

/// Exports these calls for a type of table.
macro_rules! table_calls {
    ($table:ty, $($call:ident: $name:ident),* $(,)?) => {
        $(table_calls!(@$call $table, $name);)*
    };
    (@create $table:ty, $name:ident) => {
        /// Creates a table.
        ///
        /// # Safety
        /// `ranks` is null, or there are `num_ranks` numbers.
        // SAFETY: the name is ACP's; a program has one ACP.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(num_ranks: c_int, ranks: *const c_int, num_slots: c_int, on: c_int) -> Table {
            // SAFETY: as required from the caller.
            let ranks = unsafe { crate::middle::tables::ranks(num_ranks, ranks) };
            call(stringify!($name), Table::NONE, async |acp| {
                let slots = usize::try_from(num_slots).map_err(|_| CallError::Argument("a negative number of slots"))?;
                Ok(<$table>::create(acp, &ranks?, slots, rank(on)?).await?.at().into())
            })
        }
    };
    (@destroy $table:ty, $name:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) {
            run(stringify!($name), async |acp| Ok(<$table>::from_address(acp, table.place()?).await?.destroy().await?));
        }
    };
    (@clear $table:ty, $name:ident) => { table_calls!(@change $table, $name, clear); };
    (@clear_local $table:ty, $name:ident) => { table_calls!(@change $table, $name, clear_local); };
    (@change $table:ty, $name:ident, $method:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) {
            run(stringify!($name), async |acp| Ok(<$table>::from_address(acp, table.place()?).await?.$method().await?));
        }
    };
    (@empty $table:ty, $name:ident) => { table_calls!(@no_element $table, $name, is_empty); };
    (@empty_local $table:ty, $name:ident) => { table_calls!(@no_element $table, $name, is_empty_local); };
    (@no_element $table:ty, $name:ident, $method:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) -> c_int {
            call(stringify!($name), 1, async |acp| {
                Ok(c_int::from(<$table>::from_address(acp, table.place()?).await?.$method().await?))
            })
        }
    };
    (@size $table:ty, $name:ident) => { table_calls!(@count $table, $name, len); };
    (@size_local $table:ty, $name:ident) => { table_calls!(@count $table, $name, len_local); };
    (@count $table:ty, $name:ident, $method:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) -> usize {
            call(stringify!($name), 0, async |acp| Ok(<$table>::from_address(acp, table.place()?).await?.$method().await?))
        }
    };
    (@assign $table:ty, $name:ident) => { table_calls!(@both $table, $name, assign); };
    (@assign_local $table:ty, $name:ident) => { table_calls!(@both $table, $name, assign_local); };
    (@merge $table:ty, $name:ident) => { table_calls!(@both $table, $name, merge); };
    (@merge_local $table:ty, $name:ident) => { table_calls!(@both $table, $name, merge_local); };
    (@move $table:ty, $name:ident) => { table_calls!(@both $table, $name, append); };
    (@move_local $table:ty, $name:ident) => { table_calls!(@both $table, $name, append_local); };
    (@swap $table:ty, $name:ident) => { table_calls!(@both $table, $name, swap); };
    (@both $table:ty, $name:ident, $method:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(one: Table, other: Table) {
            run(stringify!($name), async |acp| {
                let one = <$table>::from_address(acp, one.place()?).await?;
                let other = <$table>::from_address(acp, other.place()?).await?;
                Ok(one.$method(&other).await?)
            });
        }
    };
    (@begin $table:ty, $name:ident) => { table_calls!(@position $table, $name, first); };
    (@begin_local $table:ty, $name:ident) => { table_calls!(@position $table, $name, first_local); };
    (@position $table:ty, $name:ident, $method:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) -> TableIt {
            call(stringify!($name), TableIt::end(table), async |acp| {
                Ok(TableIt::of(table, <$table>::from_address(acp, table.place()?).await?.$method().await?))
            })
        }
    };
    (@end $table:ty, $name:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) -> TableIt {
            TableIt::end(table)
        }
    };
    (@end_local $table:ty, $name:ident) => {
        /// Returns the position at which a loop from the first local element ends: that of the first
        /// element after all local ones. Without local elements it is the end, as is the first one.
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table) -> TableIt {
            call(stringify!($name), TableIt::end(table), async |acp| {
                let of = <$table>::from_address(acp, table.place()?).await?;
                match of.is_empty_local().await? {
                    true => Ok(TableIt::end(table)),
                    false => Ok(TableIt::of(table, of.first_after_local().await?)),
                }
            })
        }
    };
    (@find $table:ty, $name:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(table: Table, element: Element) -> TableIt {
            call(stringify!($name), TableIt::end(table), async |acp| {
                let key = key(acp, element).await?;
                Ok(TableIt::of(table, <$table>::from_address(acp, table.place()?).await?.find(&key).await?))
            })
        }
    };
    (@increment $table:ty, $name:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(it: TableIt) -> TableIt {
            call(stringify!($name), TableIt::end(it.table), async |acp| {
                if it.elem == 0 {
                    return Ok(TableIt::end(it.table));
                }
                let of = <$table>::from_address(acp, it.table.place()?).await?;
                Ok(TableIt::of(it.table, of.after(it.position()?).await?))
            })
        }
    };
    (@dereference $table:ty, $name:ident) => {
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(it: TableIt) -> Element {
            call(stringify!($name), Element::default(), async |acp| {
                Ok(pair(&<$table>::from_address(acp, it.table.place()?).await?.entry(it.position()?).await?).first)
            })
        }
    };
    (@insert $table:ty, $name:ident) => {
        /// Inserts a key; returns whether it is new.
        fn inserted(table: Table, element: Element) -> Option<bool> {
            call(stringify!($name), None, async |acp| {
                let key = key(acp, element).await?;
                Ok(Some(<$table>::from_address(acp, table.place()?).await?.insert(&key).await?))
            })
        }
    };
}

pub(super) use table_calls;

use super::{
    call::{CallError, Result},
    types,
};
use core::ffi::c_int;
use rdma_fabric::Rank;

/// Returns the ranks of an array.
///
/// # Safety
/// `numbers` is null, or there are `count` of them.
#[allow(unsafe_code)]
pub(super) unsafe fn ranks(count: c_int, numbers: *const c_int) -> Result<Vec<Rank>> {
    match usize::try_from(count) {
        Ok(count) if !numbers.is_null() => {
            // SAFETY: they exist, and the program changes none of them during the call.
            let numbers = unsafe { core::slice::from_raw_parts(numbers, count) };
            numbers.iter().map(|number| types::rank(*number)).collect()
        }
        _ => Err(CallError::Argument("no ranks")),
    }
}
