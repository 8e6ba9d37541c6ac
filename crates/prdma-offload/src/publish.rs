//! Tables that members of a group read from each other.
//!
//! Each member registers its table, writes its location into a header that all can access, and
//! waits for the others. Then it reads the tables it needs, and waits again before the next table
//! may replace this one. A member holds only the tables that it has read.
//!
//! A member that cannot publish or read still takes part in both waits, so its error does not block
//! any other member. A future that is dropped half-way leaves the group in the state of a dropped
//! collective, and frees the table: others may then find [`FabricError::StaleRegion`].

use crate::init::Seal;
use bytemuck::{Pod, Zeroable};
use rdma_fabric::{Fabric, FabricError, Group, GroupMemory, Rank, Region, RegionKey, RemoteAddr, Result, join};

/// The content of a header: the location of a member's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TableHeader {
    /// The region with the table; [`NOWHERE`] if there is none because it could not be registered.
    /// Meaningless if the table is empty.
    pub(crate) key: u64,
    /// The number of elements of the table.
    pub(crate) elements: u64,
}

/// Bytes in front of the records of a sealed table: its kind, written last, and its number of
/// records.
const FRONT: usize = 16;

/// A key that does not belong to any region.
pub(crate) const NOWHERE: u64 = u64::MAX;

impl TableHeader {
    /// The size of a header: `headers` of [`publish`] has as many bytes at each member.
    pub(crate) const BYTES: usize = size_of::<TableHeader>();

    /// Registers `records` and returns a header with their location. The caller must keep the
    /// region until no member reads it any longer.
    pub(crate) fn register<T: Pod>(fabric: &Fabric, records: &[T]) -> Result<(TableHeader, Option<Region>)> {
        Self::register_bytes(fabric, bytemuck::cast_slice(records), records.len() as u64)
    }

    /// Registers the bytes of `elements` records.
    fn register_bytes(fabric: &Fabric, bytes: &[u8], elements: u64) -> Result<(TableHeader, Option<Region>)> {
        if bytes.is_empty() {
            return Ok((TableHeader { key: 0, elements }, None));
        }
        let region = fabric.alloc(bytes.len().next_multiple_of(8))?;
        fabric.write(&region.span(fabric, 0, bytes.len())?, bytes)?;
        Ok((TableHeader { key: region.key().to_bits(), elements }, Some(region)))
    }

    /// Registers records like [`TableHeader::register_bytes`], sealed.
    fn register_sealed(seal: &Seal, bytes: &[u8], elements: u64) -> Result<(TableHeader, Option<Region>)> {
        let fabric = &seal.handle;
        let region = fabric.alloc((FRONT + bytes.len()).next_multiple_of(8))?;
        fabric.write(&region.span(fabric, FRONT, bytes.len())?, bytes)?;
        fabric.store(&region.word(fabric, 8)?, elements)?;
        // After all other words (release).
        fabric.store(&region.word(fabric, 0)?, seal.kind)?;
        Ok((TableHeader { key: region.key().to_bits(), elements }, Some(region)))
    }

    /// Writes the header to the location where the other members read it.
    fn write(self, headers: &GroupMemory, fabric: &Fabric) -> Result<()> {
        for (place, value) in [(0, self.key), (8, self.elements)] {
            fabric.store(&fabric.local_word(headers.at(fabric.rank(), place)?)?, value)?;
        }
        Ok(())
    }
}

/// Publishes `records`, and reads the tables of `members` (numbers in the group, returned in their
/// order; a member may be repeated). Collective over the group; members may publish different
/// lengths, and read different tables.
///
/// `headers` has at least [`TableHeader::BYTES`] bytes at each member of `group`, which must not be
/// used otherwise during the call. It can be reused immediately afterwards.
///
/// # Errors
/// As [`Fabric::alloc`] here, and [`FabricError::NoSuchRegion`] at members that read from a member
/// with that error; [`FabricError::NoSuchRank`] for a number that no member has; as
/// [`Group::barrier`]. The first error is returned after all members have completed both waits.
pub(crate) async fn publish<T: Pod>(
    group: &mut Group,
    headers: &GroupMemory,
    records: &[T],
    members: &[usize],
) -> Result<Vec<Vec<T>>> {
    let published = publish_sealed(group, headers, records, members, None).await?;
    Ok(published.tables.into_iter().map(|(_, table)| table).collect())
}

/// The table of a member, and the tables that it has read.
pub(crate) struct Published<T> {
    /// The key of this member's table.
    pub(crate) mine: u64,
    /// The others' tables, each with its key.
    pub(crate) tables: Vec<(u64, Vec<T>)>,
}

/// Publishes records like [`publish`]; if there is a seal, in tables that only members of guarded
/// requests can have written.
///
/// # Errors
/// As [`publish`], and [`FabricError::Corrupt`] for a table without the seal.
pub(crate) async fn publish_sealed<T: Pod>(
    group: &mut Group,
    headers: &GroupMemory,
    records: &[T],
    members: &[usize],
    seal: Option<&Seal>,
) -> Result<Published<T>> {
    let size = const {
        assert!(size_of::<T>() > 0);
        size_of::<T>()
    };
    let Published { mine, tables } =
        publish_bytes(group, headers, bytemuck::cast_slice(records), size, members, seal).await?;
    let records = |bytes: Vec<u8>| bytes.chunks_exact(size).map(bytemuck::pod_read_unaligned).collect();
    Ok(Published { mine, tables: tables.into_iter().map(|(key, bytes)| (key, records(bytes))).collect() })
}

/// Publishes and reads the bytes of records of `size` bytes like [`publish_sealed`].
async fn publish_bytes(
    group: &mut Group,
    headers: &GroupMemory,
    bytes: &[u8],
    size: usize,
    members: &[usize],
    seal: Option<&Seal>,
) -> Result<Published<u8>> {
    let fabric = group.fabric().clone();
    let elements = (bytes.len() / size) as u64;
    let mine = match seal {
        None => TableHeader::register_bytes(&fabric, bytes, elements),
        Some(seal) => TableHeader::register_sealed(seal, bytes, elements),
    };
    let header = mine.as_ref().map_or(TableHeader { key: NOWHERE, elements: 0 }, |(header, _)| *header);
    let written = header.write(headers, &fabric);
    group.barrier().await?;
    let reads = members.iter().map(|member| {
        let rank = group.rank(*member);
        let fabric = &fabric;
        async move { table(fabric, headers, rank?, size, seal).await }
    });
    let tables = join::join_all(reads).await;
    group.barrier().await?;
    // The table stays registered until here.
    let (header, _region) = mine?;
    written?;
    Ok(Published { mine: header.key, tables: tables.into_iter().collect::<Result<_>>()? })
}

/// Returns the bytes of the table that `rank` has published, of records of `size` bytes, and its key.
async fn table(
    fabric: &Fabric,
    headers: &GroupMemory,
    rank: Rank,
    size: usize,
    seal: Option<&Seal>,
) -> Result<(u64, Vec<u8>)> {
    let header = fabric.remote_span::<u64>(headers.at(rank, 0)?, 2)?;
    let [key, elements] = fabric.get(&header, [0; 2]).await?;
    if elements == 0 && key != NOWHERE && seal.is_none() {
        return Ok((key, Vec::new()));
    }
    let region = RegionKey::from_bits(key);
    if key == NOWHERE {
        return Err(FabricError::NoSuchRegion { rank, region });
    }
    let addr = |offset| RemoteAddr { rank, region, offset };
    let (fabric, elements, start) = match seal {
        None => (fabric, elements, 0),
        Some(seal) => {
            let fabric = &seal.handle;
            if !seal.may_be_at(rank, region)?
                || fabric.get_word(&fabric.remote_word::<u64>(addr(0))?).await? != seal.kind
            {
                return Err(FabricError::Corrupt { rank, what: &"seal of a table" });
            }
            (fabric, fabric.get_word(&fabric.remote_word::<u64>(addr(8))?).await?, FRONT as u64)
        }
    };
    let elements = usize::try_from(elements).map_err(|_| FabricError::Corrupt { rank, what: &"length of a table" })?;
    // Resolved before memory is allocated for it, so that a damaged length is an error and does not
    // cause an allocation.
    let span = fabric.remote_span::<u8>(addr(start), elements.saturating_mul(size))?;
    Ok((key, fabric.get(&span, vec![0; span.len()]).await?))
}

#[cfg(test)]
mod tests {
    use super::{TableHeader, publish};
    use checks::jobs::{threads, virtual_time};
    use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
    use tofu2_virt::Platform;

    /// Returns the table of a member: longer for greater numbers, empty for the first.
    fn table(member: usize, round: usize) -> Vec<[u32; 3]> {
        (0..member * 5).map(|at| [member as u32, at as u32, round as u32]).collect()
    }

    /// Reads, at every member, the tables of the two after it and its own; three times with the
    /// same headers.
    async fn neighbours(fabric: Fabric) -> ProgramResult<()> {
        let mut group = Group::world(&fabric).await?;
        let headers = group.memory(TableHeader::BYTES).await?;
        let (n, me) = (group.len(), group.me());
        let asked = [(me + 2) % n, me, (me + 1) % n, (me + 2) % n];
        for round in 0..3 {
            let tables = publish(&mut group, &headers, &table(me, round), &asked).await?;
            assert_eq!(tables, asked.map(|member| table(member, round)), "round {round}");
            // A call that does not read tables does not depend on other members' tables.
            assert!(publish::<u64>(&mut group, &headers, &[], &[]).await?.is_empty());
        }
        Ok(())
    }

    /// Publishes, at member 1, more than it can register, and reads from a nonexistent member.
    async fn failing(fabric: Fabric) -> ProgramResult<String> {
        let mut group = Group::world(&fabric).await?;
        let headers = group.memory(TableHeader::BYTES).await?;
        let me = group.me();
        let told = match me {
            1 => publish(&mut group, &headers, &vec![1u64; 1 << 16], &[0]).await.expect_err("too much"),
            _ => publish(&mut group, &headers, &[7u64], &[0, 1]).await.expect_err("member 1 has none"),
        };
        if me == 1 {
            assert!(matches!(told, FabricError::OutOfMemory(_)), "{told}");
        } else {
            assert!(matches!(told, FabricError::NoSuchRegion { rank, .. } if rank == Rank::new(1)), "{told}");
        }
        let outside = publish::<u64>(&mut group, &headers, &[], if me == 1 { &[9] } else { &[1] }).await;
        assert_eq!(outside.err(), (me == 1).then(|| FabricError::NoSuchRank { rank: Rank::new(9), ranks: 3 }));
        // The group and the headers remain usable.
        let tables = publish(&mut group, &headers, &[me as u64], &[0, 1, 2]).await?;
        assert_eq!(tables, [[0], [1], [2]]);
        Ok(told.to_string())
    }

    #[test]
    fn members_read_the_tables_they_ask_for() {
        for ranks in [1, 2, 3, 5] {
            threads(ranks).run(&neighbours).unwrap();
            virtual_time(&Platform::fx100(), ranks).shuffle_ties(true).run(&neighbours).unwrap();
        }
    }

    #[test]
    fn a_member_that_cannot_publish_does_not_stop_others() {
        threads(3).segment_bytes(1 << 18).run(&failing).unwrap();
    }
}
