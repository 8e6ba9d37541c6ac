//! Encoded descriptors decode to the same commands, and garbage is refused.

use super::*;
use proptest::prelude::*;
use rdma_fabric::Rank;

fn queue() -> impl Strategy<Value = QueueId> {
    (0..1u32 << 24, 0..16u8, any::<u8>(), 0..16u8)
        .prop_map(|(rank, engine, number, context)| QueueId::new(Rank::new(rank), engine, number, context))
}

fn stadd() -> impl Strategy<Value = Stadd> {
    any::<u64>().prop_map(Stadd::from_bits)
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::Four), Just(Width::Eight)]
}

fn command() -> impl Strategy<Value = Command> {
    let len = 0..1u32 << 24;
    prop_oneof![
        (queue(), stadd(), stadd(), len.clone()).prop_map(|(to, from, at, len)| Command::put(to, from, at, len)),
        (queue(), stadd(), stadd(), len).prop_map(|(to, from, at, len)| Command::get(to, from, at, len)),
        (queue(), stadd(), prop::collection::vec(any::<u8>(), 0..=32)).prop_map(|(to, at, bytes)| Command::PutInline {
            to,
            bytes: Inline::new(&bytes).unwrap(),
            at
        }),
        (queue(), stadd(), width(), 0..5u8, any::<u64>()).prop_map(|(to, at, width, kind, operand)| {
            let op = [Amo::Swap, Amo::Add, Amo::Xor, Amo::And, Amo::Or][usize::from(kind)](operand);
            Command::Atomic { to, at, width, amo: op }
        }),
        (queue(), stadd(), width(), any::<u64>(), any::<u64>()).prop_map(|(to, at, width, expected, new)| {
            // Only the low half of 4-byte operands is used, and only that half is encoded.
            let mask = if width == Width::Four { 0xffff_ffff } else { u64::MAX };
            Command::Atomic { to, at, width, amo: Amo::CompareSwap { expected: expected & mask, new: new & mask } }
        }),
        Just(Command::Nop),
    ]
}

fn posting() -> impl Strategy<Value = Posting> {
    let flags = any::<[bool; 5]>();
    let numbers = (any::<u8>(), 0..16u8, any::<Option<u8>>(), any::<u16>(), any::<u8>());
    (command(), flags, numbers).prop_map(|(command, flags, (edata, sps, path, mtu, gap))| {
        let [tcq_notice, local_notice, remote_notice, strong_order, delay_start] = flags;
        Posting {
            command,
            tag: 0,
            edata,
            sps,
            tcq_notice,
            local_notice,
            remote_notice,
            strong_order,
            delay_start,
            path,
            mtu,
            gap,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 4000 }))]

    #[test]
    fn descriptors_come_back(posting in posting()) {
        let descriptor = encode(&posting);
        prop_assert_eq!(slots(&descriptor.first), Some(posting.command.slots()));
        prop_assert_eq!(descriptor.second.is_some(), posting.command.slots() == 2);
        prop_assert_eq!(decode(&descriptor), Some(posting));
        let is_brief = match posting.command {
            Command::Nop | Command::Put { .. } => !posting.local_notice,
            Command::PutInline { bytes, .. } => !posting.local_notice && bytes.as_bytes().len() == 8,
            _ => false,
        };
        prop_assert_eq!(brief(descriptor.first).is_some(), is_brief);
    }

    /// Anything that can be decoded encodes to the same bits, whether one bit was flipped or all
    /// bits are random.
    #[test]
    fn garbage_is_refused_or_harmless(
        posting in posting(), word in 0..8usize, bit in 0..64u32, drawn in any::<[u64; 8]>(), flip in any::<bool>()
    ) {
        let mut descriptor = encode(&posting);
        if flip {
            let second = descriptor.second.get_or_insert([0; 4]);
            if word < 4 { descriptor.first[word] ^= 1 << bit } else { second[word - 4] ^= 1 << bit }
        } else {
            descriptor.first.copy_from_slice(&drawn[..4]);
            descriptor.second = Some([drawn[4], drawn[5], drawn[6], drawn[7]]);
        }
        if slots(&descriptor.first) == Some(1) {
            descriptor.second = None;
        }
        let decoded = decode(&descriptor);
        if let Some(decoded) = decoded {
            prop_assert_eq!(encode(&decoded), descriptor);
        }
        if let Some(brief) = brief(descriptor.first) {
            let Brief { to, at, payload, edata, sps, tcq_notice, remote_notice } = brief;
            let command = match payload {
                Payload::Nothing => Command::Nop,
                Payload::Word(word) => Command::PutInline { to, bytes: Inline::word(word), at },
                Payload::Memory(from, len) => Command::put(to, from, at, len),
            };
            let said = Posting { edata, sps, tcq_notice, remote_notice, ..decoded.unwrap() };
            prop_assert_eq!(decode(&Descriptor { second: None, ..descriptor }), Some(Posting { command, ..said }));
        }
    }
}

#[test]
fn a_slot_of_zeros_is_no_command() {
    assert_eq!(slots(&[0; 4]), None);
    assert_eq!(decode(&Descriptor { first: [0; 4], second: None }), None);
}

#[test]
fn blocks_are_so_many_commands() {
    let to = QueueId::new(Rank::new(1), 0, 0, 0);
    let (from, at) = (Stadd::fixed(1), Stadd::fixed(2) + 64);
    let command = Command::Put { to, from, at, len: 16, blocks: Blocks { count: 3, stride: 100 } };
    let all: Vec<_> = each_block(Posting::new(command).sps(1).tcq(7)).collect();
    let one = |ahead| Posting::new(Command::put(to, from + ahead, at + ahead, 16)).sps(1).tcq(7);
    assert_eq!(all, [one(0), one(100), one(200)]);
    assert_eq!(each_block(Posting::new(Command::Nop)).count(), 1);
}
