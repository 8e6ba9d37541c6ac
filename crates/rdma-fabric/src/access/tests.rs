//! Both forms of access, compared with plain slices: every width and alignment, and a range of
//! lengths.

#[cfg(not(miri))]
use super::chosen;
use super::portable;
use crate::Amo;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// 8-aligned memory that may be written through a shared reference.
struct Memory(Vec<AtomicU64>);

impl Memory {
    /// At least `len` bytes with some pattern.
    fn new(len: usize) -> Self {
        Memory((0..len.div_ceil(8) as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).into()).collect())
    }

    fn words<const N: usize>(words: [u64; N]) -> Self {
        Memory(words.into_iter().map(AtomicU64::new).collect())
    }

    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast::<u8>().cast_mut()
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect()
    }
}

macro_rules! access_tests {
    ($name:ident: $form:ident) => {
        mod $name {
            use super::*;

            fn lengths() -> impl Iterator<Item = usize> {
                let (short, step) = if cfg!(miri) { (20, 7) } else { (300, 1) };
                (0..short).chain([511, 1023, 1024, 1025, 2047, 2100, 9000].into_iter().step_by(step))
            }

            #[test]
            fn a_hint_touches_nothing() {
                let shared = Memory::new(256);
                let bytes = shared.bytes();
                $form::expect_store(shared.base());
                $form::expect_store(core::ptr::null());
                assert_eq!(shared.bytes(), bytes);
            }

            #[test]
            fn copies_move_exactly_their_bytes() {
                for align in (0..17).step_by(if cfg!(miri) { 3 } else { 1 }) {
                    for len in lengths() {
                        let shared = Memory::new(len + 64);
                        let bytes = shared.bytes();
                        let base = shared.base();
                        let source: Vec<u8> = (0..len).map(|i| (i * 7 + 1) as u8).collect();
                        let mut got = vec![0u8; len];
                        // SAFETY: all ranges lie in vectors of `len + 64` and `len` bytes that no
                        // other code uses.
                        unsafe {
                            $form::copy_out(got.as_mut_ptr(), base.add(align), len);
                            assert_eq!(got, bytes[align..align + len], "out, align {align}, len {len}");
                            $form::copy_in(base.add(align), source.as_ptr(), len);
                        }
                        let mut want = bytes.clone();
                        want[align..align + len].copy_from_slice(&source);
                        assert_eq!(shared.bytes(), want, "in, align {align}, len {len}");
                        // SAFETY: as above.
                        unsafe { $form::zero(base.add(align), len) };
                        want[align..align + len].fill(0);
                        assert_eq!(shared.bytes(), want, "zero, align {align}, len {len}");
                    }
                }
            }

            #[test]
            fn copies_between_shared_memories() {
                for (from, to) in [(0, 0), (1, 6), (8, 3), (4, 4), (5, 16)] {
                    for len in lengths() {
                        let (a, b) = (
                            Memory::new(len + 64),
                            Memory(vec![0; (len + 64).div_ceil(8)].into_iter().map(AtomicU64::new).collect()),
                        );
                        // SAFETY: both ranges lie in vectors of at least `len + 64` bytes.
                        unsafe {
                            let src = a.base().add(from);
                            $form::copy_between(b.base().add(to), src, len);
                        }
                        let (a, b) = (a.bytes(), b.bytes());
                        assert_eq!(a[from..from + len], b[to..to + len], "{from} to {to}, len {len}");
                        assert!(b[..to].iter().chain(&b[to + len..]).all(|&byte| byte == 0));
                    }
                }
            }

            #[test]
            fn read_modify_writes_agree_with_the_contract() {
                let amos = |v: u64| {
                    let swap = Amo::CompareSwap { expected: 5, new: v };
                    [Amo::Add(v), Amo::Swap(v), swap, Amo::Or(v), Amo::And(v), Amo::Xor(v)]
                };
                for start in [0u64, 5, u64::MAX, 0x8000_0000_7fff_ffff] {
                    for amo in [0u64, 1, u64::MAX, 0x1_0000_0001].into_iter().flat_map(amos) {
                        let memory = Memory::words([start, start]);
                        let p = memory.base();
                        // SAFETY: the first word of the array.
                        let (old, new) = unsafe { ($form::rmw8(p, amo), $form::load8(p)) };
                        assert_eq!((old, new), (start, amo.apply(start)));
                        assert_eq!(memory.0[1].load(Relaxed), start);
                        // SAFETY: as above.
                        unsafe {
                            $form::store8(p, 3);
                            assert_eq!($form::load8(p), 3);
                        }
                        let small = amo.map(|v| v as u32);
                        for half in [0, 1] {
                            let other = 0x0123_4567_u32;
                            let both = if half == 0 { [start as u32, other] } else { [other, start as u32] };
                            let memory = Memory::words([bytemuck::cast(both)]);
                            let p = memory.base().wrapping_add(4 * half);
                            // SAFETY: a 4-byte word of the cell.
                            let (old, new) = unsafe { ($form::rmw4(p, small), $form::load4(p)) };
                            assert_eq!((old, new), (start as u32, small.apply(start as u32)));
                            // SAFETY: as above.
                            unsafe {
                                $form::store4(p, 9);
                                assert_eq!($form::load4(p), 9);
                            }
                            assert_eq!(memory.bytes()[4 - 4 * half..8 - 4 * half], other.to_ne_bytes());
                        }
                    }
                }
            }

            #[test]
            fn atomics_of_two_threads_lose_nothing() {
                const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
                let words = Memory::words([0; 3]);
                let shared = &words;
                std::thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(move || {
                            let p = shared.base();
                            for i in 0..ROUNDS {
                                // SAFETY: words of the array, which outlives the scope; all access
                                // is by this module.
                                unsafe {
                                    $form::rmw8(p, Amo::Add(1));
                                    $form::rmw4(p.add(8 + 4 * (i as usize % 2)), Amo::Add(1));
                                    let bit = 1 << (i % 64);
                                    $form::rmw8(p.add(16), if i % 3 == 0 { Amo::Or(bit) } else { Amo::Xor(0) });
                                }
                            }
                        });
                    }
                });
                let p = shared.base();
                // SAFETY: as above.
                unsafe {
                    assert_eq!($form::load8(p), 2 * ROUNDS);
                    assert_eq!(u64::from($form::load4(p.add(8))) + u64::from($form::load4(p.add(12))), 2 * ROUNDS);
                }
            }

            /// Copies of many lengths, at any alignment, while another thread writes: each byte is
            /// either old or new.
            #[test]
            fn racing_copies_see_old_or_new_bytes() {
                const ROUNDS: usize = if cfg!(miri) { 3 } else { 300 };
                for len in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 257, 3000] {
                    if cfg!(miri) && len > 130 {
                        continue;
                    }
                    for align in [0, 3, 4] {
                        let words = Memory(vec![0u64; (len + 16) / 8 + 1].into_iter().map(AtomicU64::new).collect());
                        let shared = &words;
                        std::thread::scope(|scope| {
                            scope.spawn(move || {
                                for round in 0..ROUNDS {
                                    let source = vec![if round % 2 == 0 { 0xa5 } else { 0x5a }; len];
                                    // SAFETY: inside the words, which outlive the scope.
                                    unsafe { $form::copy_in(shared.base().add(align), source.as_ptr(), len) };
                                }
                            });
                            let copy = Memory::new(len + 24);
                            for round in 0..ROUNDS {
                                let mut got = vec![1u8; len];
                                // SAFETY: as above; `got` and `copy` are long enough.
                                unsafe {
                                    let from = shared.base().add(align);
                                    if round % 2 == 0 {
                                        $form::copy_out(got.as_mut_ptr(), from, len);
                                    } else {
                                        $form::copy_between(copy.base().add(1), from, len);
                                        $form::copy_out(got.as_mut_ptr(), copy.base().add(1), len);
                                    }
                                }
                                assert!(
                                    got.iter().all(|byte| [0, 0xa5, 0x5a].contains(byte)),
                                    "len {len}, align {align}"
                                );
                            }
                        });
                    }
                }
            }

            #[test]
            fn words_are_never_torn() {
                const ROUNDS: u64 = if cfg!(miri) { 50 } else { 50_000 };
                let words = Memory::words([0]);
                let shared = &words;
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let p = shared.base();
                        for i in 0..ROUNDS {
                            let value = if i % 2 == 0 { 0 } else { u64::MAX };
                            // SAFETY: the array outlives the scope.
                            unsafe { $form::copy_in(p, value.to_ne_bytes().as_ptr(), 8) };
                        }
                    });
                    let p = shared.base();
                    for _ in 0..ROUNDS {
                        let mut value = [0u8; 8];
                        // SAFETY: the array outlives the scope.
                        unsafe { $form::copy_out(value.as_mut_ptr(), p, 8) };
                        assert!([0, u64::MAX].contains(&u64::from_ne_bytes(value)));
                    }
                });
            }
        }
    };
}
access_tests!(in_cells: portable);

/// The number of copies selects the method of a copy, but does not change its result.
#[test]
fn one_of_several_copies_is_a_copy() {
    for len in [0, 1, 8, 63, 64, 65, 127, 128, 300, 2047, 2048, 2100, 9000] {
        for copies in [1, 2, 8, 300] {
            let (from, to) = (Memory::new(len + 64), Memory::new(len + 128));
            let (source, mut want) = (from.bytes(), to.bytes());
            // SAFETY: both ranges lie in vectors that no other code uses.
            unsafe { super::copy_one_of(to.base().add(9), from.base().add(5), len, copies * len) };
            want[9..9 + len].copy_from_slice(&source[5..5 + len]);
            assert_eq!(to.bytes(), want, "{copies} of {len}");
        }
    }
}

#[cfg(not(miri))]
access_tests!(as_chosen: chosen);
