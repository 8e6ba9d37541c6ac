//! Vectors.

#![allow(unsafe_code, reason = "exported names; nothing is dereferenced")]

use super::{
    sequence,
    types::{Index, Object},
};
use acp::Linear;
use core::ffi::c_int;

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_create_vector(size: usize, rank: c_int) -> Object {
    sequence::create::<Linear>("acp_create_vector", size, rank)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_destroy_vector(vector: Object) {
    sequence::destroy::<Linear>("acp_destroy_vector", vector);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_clear_vector(vector: Object) {
    sequence::clear::<Linear>("acp_clear_vector", vector);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_empty_vector(vector: Object) -> c_int {
    c_int::from(sequence::size::<Linear>("acp_empty_vector", vector) == 0)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_size_vector(vector: Object) -> usize {
    sequence::size::<Linear>("acp_size_vector", vector)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_capacity_vector(vector: Object) -> usize {
    sequence::capacity::<Linear>("acp_capacity_vector", vector)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_reserve_vector(vector: Object, size: usize) {
    sequence::reserve::<Linear>("acp_reserve_vector", vector, size);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_swap_vector(one: Object, other: Object) {
    sequence::swap::<Linear>("acp_swap_vector", [one, other]);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_vector(to: Object, from: Object) {
    sequence::assign::<Linear>("acp_assign_vector", to, from);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_range_vector(vector: Object, start: Index, end: Index) {
    sequence::assign_range::<Linear>("acp_assign_range_vector", vector, [start, end]);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_at_vector(vector: Object, index: c_int) -> u64 {
    sequence::at::<Linear>("acp_at_vector", Index { object: vector, index })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_begin_vector(vector: Object) -> Index {
    Index { object: vector, index: 0 }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_end_vector(vector: Object) -> Index {
    sequence::end::<Linear>("acp_end_vector", vector)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_vector(it: Index, ga: u64, size: usize) -> Index {
    sequence::insert::<Linear>("acp_insert_vector", it, ga, size)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_range_vector(it: Index, start: Index, end: Index) -> Index {
    sequence::insert_range::<Linear>("acp_insert_range_vector", it, [start, end])
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_vector(it: Index, size: usize) -> Index {
    sequence::erase::<Linear>("acp_erase_vector", it, size)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_range_vector(start: Index, end: Index) -> Index {
    sequence::erase_range::<Linear>("acp_erase_range_vector", [start, end])
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_push_back_vector(vector: Object, ga: u64, size: usize) {
    sequence::push_back::<Linear>("acp_push_back_vector", vector, ga, size);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_pop_back_vector(vector: Object, size: usize) {
    sequence::pop::<Linear>("acp_pop_back_vector", vector, size, false);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_advance_vector_it(it: Index, n: c_int) -> Index {
    sequence::advance(it, n)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_dereference_vector_it(it: Index) -> u64 {
    sequence::at::<Linear>("acp_dereference_vector_it", it)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_distance_vector_it(first: Index, last: Index) -> c_int {
    sequence::distance(first, last)
}
