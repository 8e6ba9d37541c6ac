//! Encoding of a gate's updates.

use crate::gates::{
    record::{Field, ROUNDS},
    remote::GateUpdate,
};
use rdma_fabric::{
    Rank,
    barrier::{GateId, Wave},
};

/// Words in front of the packets.
const HEAD: usize = 7;
/// The maximum number of bytes of an update.
pub(super) const MOST: usize = 8 * (HEAD + 2 * (1 + Wave::WORDS));

/// Encodes an update.
pub(in crate::part) fn bytes_of(update: &GateUpdate) -> Vec<u8> {
    let gate = u64::from(update.rank.number()) | u64::from(update.index) << 32;
    let wire = u64::from(update.wire == Field::DestinationRemote);
    let mut words =
        vec![gate, update.life, update.setting, update.fired, update.leads.to_bits(), update.to.to_bits(), wire];
    for packet in &update.packets {
        words.push(packet.len() as u64);
        words.extend(packet);
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Decodes an update; `None` if [`bytes_of`] never returns these bytes.
pub(super) fn update_of(bytes: &[u8]) -> Option<GateUpdate> {
    let (words, []) = bytes.as_chunks::<8>() else { return None };
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (&[gate, life, setting, fired, leads, to, wire], rest) = words.split_first_chunk::<HEAD>()?;
    let packet = |rest: &[u64]| {
        let (len, rest) = rest.split_first()?;
        let len = usize::try_from(*len).ok().filter(|len| *len <= Wave::WORDS)?;
        let (packet, rest) = rest.split_at_checked(len)?;
        Some((packet.to_vec(), rest.to_vec()))
    };
    let (last, rest) = packet(rest)?;
    let (before, rest) = packet(&rest)?;
    let update = GateUpdate {
        rank: Rank::new(gate as u32),
        index: u32::try_from(gate >> 32).ok()?,
        life,
        setting,
        fired,
        leads: GateId::from_bits(leads),
        to: GateId::from_bits(to),
        wire: if wire == 0 { Field::SourceRemote } else { Field::DestinationRemote },
        packets: [last, before],
    };
    let is_possible = rest.is_empty()
        && wire < 2
        && update.index < GateId::INDICES
        && life < u64::from(GateId::GENERATIONS)
        && setting % 2 == 0
        && fired < ROUNDS;
    is_possible.then_some(update)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Chance;

    #[test]
    fn bytes_lead_back_and_others_are_refused() {
        let gate = |rank, index| GateId::new(Rank::new(rank), index, 3);
        for (wire, packets) in [
            (Field::SourceRemote, [vec![1, 2, 3], vec![4]]),
            (Field::DestinationRemote, Default::default()),
            (Field::SourceRemote, [vec![7; Wave::WORDS], vec![8; Wave::WORDS]]),
        ] {
            let (rank, leads, to) = (Rank::new(70_000), gate(1, 2), gate(3, 4));
            let update = GateUpdate { rank, index: 9, life: 3, setting: 8, fired: 5, leads, to, wire, packets };
            let bytes = bytes_of(&update);
            assert!(bytes.len() <= MOST);
            assert_eq!(update_of(&bytes), Some(update));
            for cut in 0..bytes.len() {
                assert_eq!(update_of(&bytes[..cut]), None);
            }
            // No change of a byte yields a value out of range.
            let mut chance = Chance::seeded();
            for _ in 0..2000 {
                let mut bytes = bytes.clone();
                let at = chance.below(bytes.len());
                bytes[at] = chance.next() as u8;
                if let Some(update) = update_of(&bytes) {
                    assert!(update.index < GateId::INDICES && update.life < GateId::GENERATIONS.into());
                    assert!(update.packets.iter().all(|packet| packet.len() <= Wave::WORDS));
                }
            }
        }
    }
}
