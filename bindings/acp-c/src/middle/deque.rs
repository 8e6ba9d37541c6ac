//! Deques.

#![allow(unsafe_code, reason = "exported names; nothing is dereferenced")]

use super::{
    sequence,
    types::{Index, Object, Pair},
};
use acp::Circular;
use core::ffi::c_int;

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_create_deque(size: usize, rank: c_int) -> Object {
    sequence::create::<Circular>("acp_create_deque", size, rank)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_destroy_deque(deque: Object) {
    sequence::destroy::<Circular>("acp_destroy_deque", deque);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_clear_deque(deque: Object) {
    sequence::clear::<Circular>("acp_clear_deque", deque);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_empty_deque(deque: Object) -> c_int {
    c_int::from(sequence::size::<Circular>("acp_empty_deque", deque) == 0)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_size_deque(deque: Object) -> usize {
    sequence::size::<Circular>("acp_size_deque", deque)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_capacity_deque(deque: Object) -> usize {
    sequence::capacity::<Circular>("acp_capacity_deque", deque)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_reserve_deque(deque: Object, size: usize) {
    sequence::reserve::<Circular>("acp_reserve_deque", deque, size);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_swap_deque(one: Object, other: Object) {
    sequence::swap::<Circular>("acp_swap_deque", [one, other]);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_deque(to: Object, from: Object) {
    sequence::assign::<Circular>("acp_assign_deque", to, from);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_range_deque(deque: Object, start: Index, end: Index) {
    sequence::assign_range::<Circular>("acp_assign_range_deque", deque, [start, end]);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_at_deque(deque: Object, index: c_int) -> u64 {
    sequence::at::<Circular>("acp_at_deque", Index { object: deque, index })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_begin_deque(deque: Object) -> Index {
    Index { object: deque, index: 0 }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_end_deque(deque: Object) -> Index {
    sequence::end::<Circular>("acp_end_deque", deque)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_deque(it: Index, ga: u64, size: usize) -> Index {
    sequence::insert::<Circular>("acp_insert_deque", it, ga, size)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_range_deque(it: Index, start: Index, end: Index) -> Index {
    sequence::insert_range::<Circular>("acp_insert_range_deque", it, [start, end])
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_deque(it: Index, size: usize) -> Index {
    sequence::erase::<Circular>("acp_erase_deque", it, size)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_range_deque(start: Index, end: Index) -> Index {
    sequence::erase_range::<Circular>("acp_erase_range_deque", [start, end])
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_push_back_deque(deque: Object, ga: u64, size: usize) {
    sequence::push_back::<Circular>("acp_push_back_deque", deque, ga, size);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_pop_back_deque(deque: Object, size: usize) {
    sequence::pop::<Circular>("acp_pop_back_deque", deque, size, false);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_push_front_deque(deque: Object, ga: u64, size: usize) {
    sequence::insert::<Circular>("acp_push_front_deque", Index { object: deque, index: 0 }, ga, size);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_pop_front_deque(deque: Object, size: usize) {
    sequence::pop::<Circular>("acp_pop_front_deque", deque, size, true);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_advance_deque_it(it: Index, n: c_int) -> Index {
    sequence::advance(it, n)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_dereference_deque_it(it: Index, size: usize) -> Pair {
    sequence::pieces::<Circular>("acp_dereference_deque_it", it, size)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_distance_deque_it(first: Index, last: Index) -> c_int {
    sequence::distance(first, last)
}
