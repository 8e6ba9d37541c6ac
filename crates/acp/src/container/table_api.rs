//! Methods that sets, multisets, maps and multimaps share.

/// Defines the methods for a whole table, and for its location.
macro_rules! table_front {
    ($name:ident<$($param:ident),*>, $kind:expr, $item:ty, $decode:expr) => {
        impl<$($param: Stored + ?Sized),*> $name<$($param),*> {
            /// Creates an empty table. Not collective: one rank creates it, and sends its
            /// [location](Self::at) to the others. The elements are spread over `ranks`, with
            /// `slots` slots at each; the directory is at `rank`. Calls on different slots do not
            /// contend, so there should be about as many slots as elements.
            ///
            /// # Errors
            /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted) and
            /// [`AcpError::NoSuchRank`](crate::AcpError::NoSuchRank), and nothing stays allocated;
            /// [`AcpError::Option`](crate::AcpError::Option) for no ranks or no slots;
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub async fn create(acp: &Acp, ranks: &[Rank], slots: usize, rank: Rank) -> Result<Self> {
                Ok(Self::of(Table::create_boxed(acp, $kind, ranks, slots, rank).await?))
            }

            /// Opens an existing table. The types must be those that it was created with.
            ///
            /// # Errors
            /// [`AcpError::Damaged`](crate::AcpError::Damaged) if there is none;
            /// [`AcpError::NoSuchRank`](crate::AcpError::NoSuchRank);
            /// [`AcpError::OutOfBounds`](crate::AcpError::OutOfBounds);
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub async fn from_address(acp: &Acp, at: TableRef) -> Result<Self> {
                Ok(Self::of(Table::open_boxed(acp, $kind, at).await?))
            }

            fn of(table: Table) -> Self {
                $name { table, types: PhantomData }
            }

            /// Frees all memory. No rank may use the table afterwards.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn destroy(self) -> impl Future<Output = Result<()>> {
                let destroyed: Boxed<'static, Result<()>> = Box::pin(self.table.destroy());
                destroyed
            }

            /// Returns the location, with which other ranks open it.
            pub fn at(&self) -> TableRef {
                self.table.at()
            }

            /// Returns the address of its directory.
            pub fn address(&self) -> GlobalAddress {
                self.table.at().address
            }

            /// Returns the number of elements; of a multiset, that of different keys. Takes no
            /// locks: while other ranks change it, each slot counts with its state at the time of
            /// reading.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn len(&self) -> impl Future<Output = Result<usize>> {
                let len: Boxed<'_, Result<usize>> = Box::pin(self.table.len(Part::Whole));
                len
            }

            /// Returns the number of elements that are at this rank.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn len_local(&self) -> impl Future<Output = Result<usize>> {
                let len: Boxed<'_, Result<usize>> = Box::pin(self.table.len(Part::Local));
                len
            }

            /// Returns whether there are no elements.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub async fn is_empty(&self) -> Result<bool> {
                Ok(self.len().await? == 0)
            }

            /// Returns whether there are no elements at this rank.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub async fn is_empty_local(&self) -> Result<bool> {
                Ok(self.len_local().await? == 0)
            }

            table_front!(@whole
                /// Removes all elements, slot by slot.
                clear();
                /// Removes the elements at this rank, slot by slot.
                clear_local();
                /// Inserts all elements of `from`, which is unchanged.
                merge(from);
                /// Inserts the elements of `from` at this rank. If all ranks call it, they merge
                /// all.
                merge_local(from);
                /// Replaces all elements by copies of those in `from`.
                assign(from);
                /// Replaces the elements at this rank by copies of those of `from` at this rank. If
                /// all ranks call it, and both are spread over the same ranks with as many slots,
                /// they assign all.
                assign_local(from);
                /// Moves all elements of `from` here, as if each were removed there and inserted
                /// here; for a moment it is in neither table. `from` is empty afterwards.
                append(from);
                /// Moves the elements of `from` at this rank here. If all ranks call it, they move
                /// all.
                append_local(from);
            );

            /// Exchanges all elements with `other`: slot by slot, if both are spread over the same
            /// ranks with as many slots; otherwise they are moved.
            ///
            /// # Errors
            /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), and everything is where
            /// it was; [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn swap<'a>(&'a self, other: &'a Self) -> impl Future<Output = Result<()>> + 'a {
                let done: Boxed<'a, Result<()>> = Box::pin(self.table.swap(&other.table));
                done
            }

            /// Returns an iterator.
            pub fn iter(&self) -> Iter<$item> {
                Iter::new(&self.table, Part::Whole, $decode)
            }

            /// Returns an iterator over the elements at this rank.
            pub fn iter_local(&self) -> Iter<$item> {
                Iter::new(&self.table, Part::Local, $decode)
            }

            /// Returns the location of the first element of a key.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn find<'a>(&'a self, key: &'a K) -> impl Future<Output = Result<Option<Entry>>> + 'a {
                self.table.find(key.stored())
            }

            /// Returns whether a key is present.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub async fn contains_key(&self, key: &K) -> Result<bool> {
                Ok(self.find(key).await?.is_some())
            }

            /// Returns the location of the first element, in the order of [`Self::iter`].
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn first(&self) -> impl Future<Output = Result<Option<Entry>>> {
                let found: Boxed<'_, Result<Option<Entry>>> = Box::pin(self.table.first(Part::Whole));
                found
            }

            /// Returns the location of the first element at this rank.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn first_local(&self) -> impl Future<Output = Result<Option<Entry>>> {
                let found: Boxed<'_, Result<Option<Entry>>> = Box::pin(self.table.first(Part::Local));
                found
            }

            /// Returns the location of the first element after all elements at this rank, in the
            /// order of [`Self::iter`]: with [`Self::first_local`] and [`Self::after`], a bound for
            /// iterating over them.
            ///
            /// # Errors
            /// [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn first_after_local(&self) -> impl Future<Output = Result<Option<Entry>>> {
                let found: Boxed<'_, Result<Option<Entry>>> = Box::pin(self.table.first_after_local());
                found
            }

            /// Returns the location of the element after a position.
            ///
            /// # Errors
            /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement) if the element at the
            /// position was removed; [`AcpError::Fabric`](crate::AcpError::Fabric).
            pub fn after(&self, position: Position) -> impl Future<Output = Result<Option<Entry>>> {
                let found: Boxed<'_, Result<Option<Entry>>> = Box::pin(self.table.after(position, Part::Whole));
                found
            }

            /// Returns the location of this rank's next element after a position.
            ///
            /// # Errors
            /// As [`Self::after`].
            pub fn after_local(&self, position: Position) -> impl Future<Output = Result<Option<Entry>>> {
                let found: Boxed<'_, Result<Option<Entry>>> = Box::pin(self.table.after(position, Part::Local));
                found
            }

            /// Returns the locations of the key and the value of the element at a position.
            ///
            /// # Errors
            /// As [`Self::after`].
            pub fn entry(&self, position: Position) -> impl Future<Output = Result<Entry>> {
                let found: Boxed<'_, Result<Entry>> = Box::pin(self.table.entry(position));
                found
            }
        }

        impl<$($param: ?Sized),*> Clone for $name<$($param),*> {
            fn clone(&self) -> Self {
                $name { table: self.table.clone(), types: PhantomData }
            }
        }

        impl<$($param: ?Sized),*> fmt::Debug for $name<$($param),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.table.fmt(f)
            }
        }
    };
    (@whole $($(#[$doc:meta])* $method:ident($($from:ident)?);)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), from methods that copy
        /// elements: in that case no element has been copied, but elements that were already moved
        /// stay moved; [`AcpError::Fabric`](crate::AcpError::Fabric).
        pub fn $method<'a>(&'a self, $($from: &'a Self)?) -> impl Future<Output = Result<()>> + 'a {
            let done: Boxed<'a, Result<()>> = Box::pin(table_front!(@call self.table, $method $(, $from)?));
            done
        }
    )*};
    (@call $table:expr, clear) => { $table.clear(Part::Whole) };
    (@call $table:expr, clear_local) => { $table.clear(Part::Local) };
    (@call $table:expr, merge, $from:ident) => { $table.merge(&$from.table, Part::Whole) };
    (@call $table:expr, merge_local, $from:ident) => { $table.merge(&$from.table, Part::Local) };
    (@call $table:expr, assign, $from:ident) => { $table.assign(&$from.table, Part::Whole) };
    (@call $table:expr, assign_local, $from:ident) => { $table.assign(&$from.table, Part::Local) };
    (@call $table:expr, append, $from:ident) => { $table.append(&$from.table, Part::Whole) };
    (@call $table:expr, append_local, $from:ident) => { $table.append(&$from.table, Part::Local) };
}

pub(super) use table_front;
