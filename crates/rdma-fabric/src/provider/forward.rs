//! A helper for wrappers: forwarding everything that a provider does not change.

/// Writes methods of a [`Provider`](crate::provider::Provider), by name, that forward the call to
/// the [`Fabric`](crate::Fabric) in the field `below`.
///
/// A wrapper writes the other methods itself; [`Fabric::layered`](crate::Fabric::layered) turns it
/// into a fabric:
///
/// ```
/// use rdma_fabric::{
///     Amo, Fabric, forward,
///     provider::{Place, Posted, Provider},
/// };
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// /// Counts atomics.
/// #[derive(Debug)]
/// struct Counted {
///     below: Fabric,
///     atomics: AtomicU64,
/// }
///
/// impl Provider for Counted {
///     forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake);
///     forward!(put, get, copy, nop, poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);
///
///     fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
///         self.atomics.fetch_add(1, Relaxed);
///         self.below.provider().atomic(word, amo)
///     }
/// }
///
/// fn counted(fabric: &Fabric) -> Fabric {
///     fabric.layered(Counted { below: fabric.clone(), atomics: AtomicU64::new(0) })
/// }
/// ```
///
/// A wrapper that has to observe accesses lists `resolve_hidden` instead of `resolve`: otherwise
/// mapped places are accessed without calling any provider. `optional` stands for `multicast`,
/// `queues`, `gates`, `colours`, `protected` and `helper`, which are taken from `below`, so that
/// the wrapper does not observe their use and the fabric of a helper is not wrapped; and for
/// `abort`. A multicast's token is one of `below`. It does not include `block_puts`, so that the
/// wrapper observes a put of each block, nor `lender`, so that it observes copies of own memory.
#[macro_export]
macro_rules! forward {
    ($($name:ident),* $(,)?) => {$($crate::forward!(@ $name);)*};
    (@ alloc) => { fn alloc(&self, bytes: usize) -> $crate::Result<$crate::Region> { self.below.provider().alloc(bytes) } };
    (@ alloc_symmetric) => { fn alloc_symmetric(&self, bytes: usize) -> $crate::provider::Boxed<'_, $crate::Result<$crate::Region>> { self.below.provider().alloc_symmetric(bytes) } };
    (@ adopt) => { fn adopt(&self, memory: $crate::OwnedMemory, uses: $crate::Uses) -> $crate::Result<$crate::Region, ($crate::FabricError, $crate::OwnedMemory)> { self.below.provider().adopt(memory, uses) } };
    (@ release) => { fn release(&self, region: $crate::Region) -> $crate::provider::Boxed<'_, $crate::Result<$crate::OwnedMemory>> { self.below.provider().release(region) } };
    (@ resolve) => { fn resolve(&self, addr: $crate::RemoteAddr, len: usize, align: usize, width: usize) -> $crate::Result<$crate::provider::Place> { self.below.provider().resolve(addr, len, align, width) } };
    (@ resolve_hidden) => { fn resolve(&self, addr: $crate::RemoteAddr, len: usize, align: usize, width: usize) -> $crate::Result<$crate::provider::Place> { self.below.provider().resolve(addr, len, align, width).map($crate::provider::Place::hidden) } };
    (@ read) => { fn read(&self, from: &$crate::provider::Place, into: &mut [u8], waiting: bool) -> $crate::Result<()> { self.below.provider().read(from, into, waiting) } };
    (@ write) => { fn write(&self, to: &$crate::provider::Place, from: &[u8], waited: bool) -> $crate::Result<()> { self.below.provider().write(to, from, waited) } };
    (@ wake) => { fn wake(&self, place: &$crate::provider::Place) { self.below.provider().wake(place) } };
    (@ put) => { fn put(&self, to: &$crate::provider::Place, from: $crate::provider::Source<'_>, notice: Option<u64>) -> $crate::provider::Posted { self.below.provider().put(to, from, notice) } };
    (@ get) => { fn get(&self, from: &$crate::provider::Place, to: $crate::provider::Sink<'_>) -> $crate::provider::Posted { self.below.provider().get(from, to) } };
    (@ copy) => { fn copy(&self, to: &$crate::provider::Place, from: &$crate::provider::Place) -> $crate::provider::Posted { self.below.provider().copy(to, from) } };
    (@ atomic) => { fn atomic(&self, word: &$crate::provider::Place, amo: $crate::Amo<u64>) -> $crate::provider::Posted { self.below.provider().atomic(word, amo) } };
    (@ nop) => { fn nop(&self) -> $crate::provider::Posted { self.below.provider().nop() } };
    (@ poll) => { fn poll(&self, token: &mut $crate::provider::Token, into: $crate::provider::Sink<'_>, cx: &mut core::task::Context<'_>) -> core::task::Poll<$crate::Result<u64>> { self.below.provider().poll(token, into, cx) } };
    (@ test) => { fn test(&self, token: &$crate::provider::Token) -> bool { self.below.provider().test(token) } };
    (@ forget) => { fn forget(&self, token: $crate::provider::Token) { self.below.provider().forget(token) } };
    (@ try_notice) => { fn try_notice(&self, waiting: bool) -> $crate::Result<Option<$crate::Notice>> { self.below.provider().try_notice(waiting) } };
    (@ poll_wait) => { fn poll_wait(&self, wait_state: &mut $crate::provider::WaitState, wait_for: $crate::provider::WaitFor<'_>, cx: &mut core::task::Context<'_>) -> core::task::Poll<$crate::Result<()>> { self.below.provider().poll_wait(wait_state, wait_for, cx) } };
    (@ end_wait) => { fn end_wait(&self, wait_state: &mut $crate::provider::WaitState, wait_for: $crate::provider::WaitFor<'_>, ended: $crate::provider::Ended) { self.below.provider().end_wait(wait_state, wait_for, ended) } };
    (@ now) => { fn now(&self) -> $crate::Time { self.below.provider().now() } };
    (@ detach) => { fn detach(&self, rest: $crate::provider::Deferred<'_>) { self.below.provider().detach(rest) } };
    (@ abort) => { fn abort(&self, text: &str, code: i32) -> $crate::FabricError { self.below.provider().abort(text, code) } };
    (@ optional) => {
        $crate::forward!(abort);
        fn multicast(&self) -> Option<&dyn $crate::provider::Multicast> { self.below.provider().multicast() }
        fn queues(&self) -> Option<&dyn $crate::provider::Queues> { self.below.provider().queues() }
        fn gates(&self) -> Option<&dyn $crate::provider::BarrierUnit> { self.below.provider().gates() }
        fn colours(&self) -> Option<&dyn $crate::provider::Colours> { self.below.provider().colours() }
        fn protected(&self) -> Option<&dyn $crate::provider::Protected> { self.below.provider().protected() }
        fn helper(&self, like: &$crate::Fabric, name: &'static str, task: $crate::provider::HelperTask) -> $crate::Result<()> { self.below.provider().helper(like, name, task) }
    };
}
