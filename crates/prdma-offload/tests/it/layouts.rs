//! Layouts against lists of their bytes.

use prdma_offload::layout::{Layout, LayoutError, Piece, count_blocks, pieces};
use proptest::{prelude::*, sample::Index};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The arguments of [`Layout::strided`].
#[derive(Clone, Debug)]
struct Loops {
    offset: u64,
    run: u64,
    dims: Vec<(u64, u64)>,
}

impl Loops {
    fn layout(&self) -> Layout {
        Layout::strided(self.offset, self.run, &self.dims).expect("small")
    }

    /// Returns every byte in order.
    fn bytes(&self) -> Vec<u64> {
        let starts = self.dims.iter().fold(vec![self.offset], |starts, (count, stride)| {
            starts.iter().flat_map(|start| (0..*count).map(move |n| start + n * stride)).collect()
        });
        starts.iter().flat_map(|start| *start..start + self.run).collect()
    }
}

fn any_loops() -> impl Strategy<Value = Loops> {
    let dims = prop::collection::vec((0u64..5, 0u64..40), 0..8);
    (0u64..60, 0u64..6, dims).prop_map(|(offset, run, dims)| Loops { offset, run, dims })
}

/// `bytes` bytes in loops without repetition: divided and spread according to `choices`.
fn spread(bytes: u64, offset: u64, choices: &[(Index, u64)]) -> Loops {
    let (mut left, mut extent, mut run, mut dims) = (bytes, 1, 1, Vec::new());
    for (level, (choice, gap)) in choices.iter().enumerate() {
        let divisors: Vec<u64> = (1..=left).filter(|n| left.is_multiple_of(*n)).collect();
        let count = if level + 1 == choices.len() { left } else { *choice.get(&divisors) };
        left /= count;
        if level == 0 {
            (run, extent) = (count, count);
        } else {
            let stride = extent + gap;
            dims.insert(0, (count, stride));
            extent += (count - 1) * stride;
        }
    }
    Loops { offset, run, dims }
}

fn pair() -> impl Strategy<Value = (Loops, Loops)> {
    let choices = || prop::collection::vec((any::<Index>(), 0u64..4), 2..9);
    let bytes = prop::sample::select(vec![1, 2, 6, 12, 24, 30, 48, 60, 64, 120]);
    (bytes, 0u64..9, 0u64..9, choices(), choices())
        .prop_map(|(bytes, from, at, a, b)| (spread(bytes, from, &a), spread(bytes, at, &b)))
}

fn longest() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1, 2, 3, 5, 7, 16, u32::MAX])
}

fn blocks(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.count)).sum()
}

/// Returns the source of each byte written. None is written twice.
fn moved(pieces: &[Piece]) -> BTreeMap<u64, u64> {
    let mut moved = BTreeMap::new();
    for piece in pieces {
        for block in 0..u64::from(piece.count) {
            for byte in 0..u64::from(piece.len) {
                let at = block * piece.stride + byte;
                assert_eq!(moved.insert(piece.at + at, piece.from + at), None, "{piece:?}");
            }
        }
    }
    moved
}

proptest! {
    #[test]
    fn a_layout_is_its_bytes(loops in any_loops()) {
        let (layout, bytes) = (loops.layout(), loops.bytes());
        let runs: Vec<u64> = layout.runs().flat_map(|(at, len)| at..at + len).collect();
        prop_assert_eq!(&runs, &bytes);
        prop_assert_eq!(layout.bytes(), bytes.len() as u64);
        prop_assert_eq!(layout.runs().count() as u64, layout.count());
        prop_assert_eq!(layout.end(), bytes.iter().max().map_or(0, |last| last + 1));
        prop_assert_eq!(layout.is_contiguous(), bytes.windows(2).all(|two| two[0] + 1 == two[1]));
        let set: BTreeSet<u64> = bytes.iter().copied().collect();
        prop_assert_eq!(layout.for_receiving().is_ok(), set.len() == bytes.len());
        prop_assert_eq!(Layout::from_words(layout.to_words()), Some(layout));
    }

    #[test]
    fn overlaps_is_exact(a in any_loops(), b in any_loops()) {
        let bytes: BTreeSet<u64> = a.bytes().into_iter().collect();
        let shared = b.bytes().iter().any(|byte| bytes.contains(byte));
        prop_assert_eq!(a.layout().overlaps(&b.layout()), shared);
        prop_assert_eq!(b.layout().overlaps(&a.layout()), shared);
    }

    #[test]
    fn pieces_move_each_byte_to_its_place((from, at) in pair(), longest in longest()) {
        let (a, b) = (from.layout(), at.layout());
        let list = pieces(&a, &b, longest).expect("equal lengths");
        let wanted: BTreeMap<u64, u64> = at.bytes().into_iter().zip(from.bytes()).collect();
        prop_assert_eq!(moved(&list), wanted);
        prop_assert!(list.iter().all(|piece| piece.len <= longest && piece.count > 0 && piece.len > 0));
        prop_assert!(list.iter().all(|piece| (piece.count == 1) == (piece.stride == 0)));
        if longest == u32::MAX {
            prop_assert_eq!(blocks(&list), count_blocks(&a, &b));
        }
    }

    #[test]
    fn pack_and_unpack((from, at) in pair(), room in 0u64..3) {
        let (a, b) = (from.layout(), at.layout());
        let source: Vec<u8> = (0..a.end() + room).map(|n| (n * 7 + 1) as u8).collect();
        let mut packed = vec![9];
        a.pack(&source, &mut packed).expect("inside");
        prop_assert_eq!(packed.remove(0), 9);
        prop_assert_eq!(&packed, &from.bytes().iter().map(|n| source[*n as usize]).collect::<Vec<_>>());
        let mut target = vec![0; (b.end() + room) as usize];
        b.unpack(&packed, &mut target).expect("inside");
        let mut wanted = vec![0; target.len()];
        at.bytes().iter().zip(&packed).for_each(|(n, byte)| wanted[*n as usize] = *byte);
        prop_assert_eq!(target, wanted);
    }

    #[test]
    fn damaged_words_are_none_or_sound((mut words, small) in any::<([u64; Layout::WORDS], [bool; Layout::WORDS])>()) {
        words.iter_mut().zip(small).for_each(|(word, small)| if small { *word %= 4 });
        if let Some(layout) = Layout::from_words(words) {
            prop_assert_eq!(layout.to_words(), words);
            let (first, run) = layout.runs().next().unwrap_or_default();
            prop_assert!(first + run <= layout.end() && layout.bytes() == layout.count() * run);
        }
    }

    #[test]
    fn subarrays(shape in prop::collection::vec((1usize..5, any::<Index>(), any::<Index>()), 0..6)) {
        let sizes: Vec<usize> = shape.iter().map(|(size, ..)| *size).collect();
        let starts: Vec<usize> = shape.iter().map(|(size, start, _)| start.index(size + 1)).collect();
        let subsizes = shape.iter().zip(&starts).map(|((size, _, sub), start)| sub.index(size - start + 1));
        let subsizes: Vec<usize> = subsizes.collect();
        let layout = Layout::subarray::<u32>(&sizes, &subsizes, &starts).expect("inside");
        let mut elements = vec![0];
        for ((size, sub), start) in sizes.iter().zip(&subsizes).zip(&starts) {
            elements = elements.iter().flat_map(|at| (*start..start + sub).map(move |n| at * size + n)).collect();
        }
        let wanted: Vec<u64> = elements.iter().flat_map(|at| *at as u64 * 4..*at as u64 * 4 + 4).collect();
        prop_assert_eq!(layout.runs().flat_map(|(at, len)| at..at + len).collect::<Vec<_>>(), wanted);
    }
}

/// All small loops: equal bytes in equal order have one layout, and only those do.
#[test]
fn there_is_one_form() {
    let mut forms: HashMap<Vec<u64>, Layout> = HashMap::new();
    let mut bytes: HashMap<Layout, Vec<u64>> = HashMap::new();
    let dims: Vec<(u64, u64)> = (1..4).flat_map(|count| (0..7).map(move |stride| (count, stride))).collect();
    for run in 1..4 {
        for outer in &dims {
            for middle in &dims {
                for inner in &dims {
                    let loops = Loops { offset: 1, run, dims: vec![*outer, *middle, *inner] };
                    let layout = loops.layout();
                    assert_eq!(*forms.entry(loops.bytes()).or_insert(layout), layout, "{loops:?}");
                    assert_eq!(*bytes.entry(layout).or_insert_with(|| loops.bytes()), loops.bytes(), "{layout:?}");
                }
            }
        }
    }
    assert_eq!(forms.len(), bytes.len());
    assert_eq!(Layout::contiguous::<u64>(5, 0), Ok(Layout::nothing()));
    assert_eq!(Layout::vector::<u64>(5, 3, 0, 2), Ok(Layout::nothing()));
    assert_eq!(Layout::subarray::<u8>(&[3, 3], &[0, 2], &[3, 1]), Ok(Layout::nothing()));
    assert_eq!(Layout::vector::<u32>(2, 3, 4, 4), Layout::contiguous::<u32>(2, 12));
}

#[test]
fn errors_tell_what_is_wrong() {
    assert_eq!(Layout::contiguous::<u64>(usize::MAX, 1), Err(LayoutError::Overflow));
    assert_eq!(Layout::contiguous::<u8>(usize::MAX, 1), Err(LayoutError::Overflow));
    assert_eq!(Layout::vector::<u8>(0, usize::MAX, 1, 3), Err(LayoutError::Overflow));
    assert_eq!(Layout::strided(0, 1 << 40, &[(1 << 30, 0)]), Err(LayoutError::Overflow));
    assert_eq!(Layout::subarray::<u8>(&[4, 1 << 40, 1 << 40], &[1, 1, 1], &[0, 0, 0]), Err(LayoutError::Overflow));
    let outside = LayoutError::OutsideArray { dim: 1, start: 2, subsize: 2, size: 3 };
    assert_eq!(Layout::subarray::<u8>(&[3, 3], &[1, 2], &[2, 2]), Err(outside));
    let outside = LayoutError::OutsideArray { dim: 0, start: usize::MAX, subsize: 2, size: 3 };
    assert_eq!(Layout::subarray::<u8>(&[3], &[2], &[usize::MAX]), Err(outside));
    let dimensions = LayoutError::Dimensions { sizes: 2, subsizes: 1, starts: 2 };
    assert_eq!(Layout::subarray::<u8>(&[3, 3], &[1], &[2, 2]), Err(dimensions));
    assert_eq!(Layout::subarray::<u8>(&[3; 9], &[2; 9], &[0; 9]), Err(LayoutError::TooManyDims));
    assert!(Layout::subarray::<u8>(&[3; 6], &[2, 2, 2, 2, 2, 3], &[0; 6]).is_ok(), "the last two are one");
    let twice = Layout::vector::<u32>(0, 3, 4, 3).expect("can be sent");
    assert_eq!(twice.for_receiving(), Err(LayoutError::OverlapsItself { run: 16 }));
    let four = Layout::contiguous::<u32>(1, 1).expect("small");
    assert_eq!(pieces(&twice, &four, 9), Err(LayoutError::Lengths { from: 48, at: 4 }));
    assert_eq!(count_blocks(&twice, &four), 0);
    assert_eq!(pieces(&four, &four, 0), Err(LayoutError::NoLength));
    let mut out = vec![];
    assert_eq!(four.pack(&[0; 7], &mut out), Err(LayoutError::OutsideBuffer { end: 8, len: 7 }));
    assert_eq!(four.unpack(&[0; 4], &mut [0; 7]), Err(LayoutError::OutsideBuffer { end: 8, len: 7 }));
    assert_eq!(four.unpack(&[0; 3], &mut [0; 8]), Err(LayoutError::Lengths { from: 3, at: 4 }));
    assert!(out.is_empty());
}

#[test]
fn damaged_words() {
    let face = Layout::subarray::<f64>(&[6, 7, 8], &[4, 1, 2], &[1, 2, 3]).expect("inside");
    let words = face.to_words();
    assert_eq!(Layout::from_words(words), Some(face));
    for (word, value) in [(0, u64::MAX), (1, u64::MAX), (1, 0), (2, 1), (2, 0), (3, u64::MAX), (3, 16), (5, 8), (9, 1)]
    {
        let mut damaged = words;
        damaged[word] = value;
        assert_eq!(Layout::from_words(damaged), None, "word {word} is {value}");
    }
    assert_eq!(Layout::from_words([0; Layout::WORDS]), None);
    assert_eq!(Layout::from_words(Layout::nothing().to_words()), Some(Layout::nothing()));
}

fn piece(from: u64, at: u64, len: u32, count: u32, stride: u64) -> Piece {
    Piece { from, at, len, count, stride }
}

#[test]
fn few_commands() {
    // A column to a column of the same matrix.
    let column = |x| Layout::vector::<f64>(x, 1000, 1, 64).expect("small");
    assert_eq!(pieces(&column(1), &column(63), 4096), Ok(vec![piece(8, 504, 8, 1000, 512)]));
    // To packed memory, each element is moved separately.
    let packed = Layout::contiguous::<f64>(0, 1000).expect("small");
    assert_eq!(pieces(&column(1), &packed, 4096).map(|list| list.len()), Ok(1000));
    assert_eq!(count_blocks(&column(1), &packed), 1000);
    // A contiguous transfer by the longest blocks, and the rest.
    let contiguous = pieces(&packed, &packed, 3000).expect("equal lengths");
    assert_eq!(contiguous, [piece(6000, 6000, 2000, 1, 0), piece(0, 0, 3000, 2, 3000)]);
    assert_eq!(count_blocks(&packed, &packed), 1);
    // A shadow of width 2 in the middle dimension: two loops, and the longer one is that of a
    // command's blocks.
    let shadow = |y| Layout::subarray::<u8>(&[100, 9, 50], &[100, 2, 3], &[0, y, 4]).expect("inside");
    assert_eq!(pieces(&shadow(1), &shadow(7), 64), Ok(vec![piece(54, 354, 3, 100, 450), piece(104, 404, 3, 100, 450)]));
    // Runs that straddle each other.
    let (by_4, by_6) = (Layout::strided(0, 4, &[(3, 5)]), Layout::strided(0, 6, &[(2, 7)]));
    let (by_4, by_6) = (by_4.expect("small"), by_6.expect("small"));
    let straddling = pieces(&by_4, &by_6, 64).expect("equal lengths");
    assert_eq!(straddling, [piece(0, 0, 4, 1, 0), piece(5, 4, 2, 1, 0), piece(7, 7, 2, 1, 0), piece(10, 9, 4, 1, 0)]);
    assert_eq!(count_blocks(&by_4, &by_6), 4);
    // No bytes.
    let nothing = Layout::nothing();
    assert_eq!(pieces(&nothing, &nothing, 0), Ok(vec![piece(0, 0, 0, 1, 0)]));
    assert_eq!(count_blocks(&nothing, &nothing), 1);
}

/// Layouts far too large to be compared run by run.
#[test]
fn large_layouts_are_compared_at_once() {
    let n = 1 << 20;
    let face = |x: usize| Layout::subarray::<u64>(&[n, n, n / 1024], &[n, n, 1], &[0, 0, x]);
    let faces: Vec<Layout> = (0..4).map(|x| face(x).expect("below 2^64")).collect();
    for (x, a) in faces.iter().enumerate() {
        for (y, b) in faces.iter().enumerate() {
            assert_eq!(a.overlaps(b), x == y, "{x} and {y}");
        }
        assert!(a.for_receiving().is_ok());
        assert_eq!(
            pieces(a, &faces[0], 8).map(|list| list.len()),
            Ok(257),
            "2^40 blocks in commands of less than 2^32"
        );
    }
}
