//! The behaviour of a table, modelled by a local map.

use acp::{Acp, Entry, Map, Multimap, Multiset, Position, Result, Set};
use rdma_fabric::Rank;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Set,
    Multiset,
    Map,
    Multimap,
}

pub(super) const KINDS: [Kind; 4] = [Kind::Set, Kind::Multiset, Kind::Map, Kind::Multimap];

/// The values of each key; a key of a set has one empty value, a key of a multiset as many as its
/// count.
pub(super) type Content = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

#[derive(Clone)]
pub(super) struct Model {
    pub(super) kind: Kind,
    pub(super) content: Content,
}

impl Model {
    pub(super) fn value<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        if matches!(self.kind, Kind::Map | Kind::Multimap) { value } else { &[] }
    }

    pub(super) fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        let value = self.value(value).to_vec();
        let values = self.content.entry(key.to_vec()).or_default();
        let is_new = values.is_empty();
        if is_new || matches!(self.kind, Kind::Multiset | Kind::Multimap) {
            values.push(value);
        }
        is_new
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let values = self.content.get_mut(key)?;
        let value = values.remove(0);
        if values.is_empty() {
            self.content.remove(key);
        }
        Some(value)
    }

    pub(super) fn merge(&mut self, from: &Model) {
        for (key, values) in &from.content {
            for value in values {
                self.insert(key, value);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self.kind {
            Kind::Multimap => self.content.values().map(Vec::len).sum(),
            _ => self.content.len(),
        }
    }
}

/// A table of any kind.
pub(super) enum Table {
    Set(Set<[u8]>),
    Multiset(Multiset<[u8]>),
    Map(Map<[u8], [u8]>),
    Multimap(Multimap<[u8], [u8]>),
}

macro_rules! each {
    ($table:expr, $name:ident => $body:expr) => {
        match $table {
            Table::Set($name) => $body,
            Table::Multiset($name) => $body,
            Table::Map($name) => $body,
            Table::Multimap($name) => $body,
        }
    };
}

macro_rules! pair {
    ($($method:ident),*) => {$(
        pub(super) async fn $method(&self, from: &Table) -> Result<()> {
            match (self, from) {
                (Table::Set(to), Table::Set(from)) => to.$method(from).await,
                (Table::Multiset(to), Table::Multiset(from)) => to.$method(from).await,
                (Table::Map(to), Table::Map(from)) => to.$method(from).await,
                (Table::Multimap(to), Table::Multimap(from)) => to.$method(from).await,
                _ => unreachable!("of one kind"),
            }
        }
    )*};
}

impl Table {
    pub(super) async fn create(acp: &Acp, kind: Kind, ranks: &[Rank], slots: usize, rank: Rank) -> Result<Self> {
        Ok(match kind {
            Kind::Set => Table::Set(Set::create(acp, ranks, slots, rank).await?),
            Kind::Multiset => Table::Multiset(Multiset::create(acp, ranks, slots, rank).await?),
            Kind::Map => Table::Map(Map::create(acp, ranks, slots, rank).await?),
            Kind::Multimap => Table::Multimap(Multimap::create(acp, ranks, slots, rank).await?),
        })
    }

    pub(super) async fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        match self {
            Table::Set(set) => set.insert(key).await,
            Table::Multiset(set) => set.insert(key).await,
            Table::Map(map) => map.insert(key, value).await,
            Table::Multimap(map) => {
                let is_new = map.count(key).await? == 0;
                map.insert(key, value).await.map(|()| is_new)
            }
        }
    }

    pub(super) async fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Table::Set(set) => set.remove(key).await?.then(Vec::new),
            Table::Multiset(set) => set.remove(key).await?.then(Vec::new),
            Table::Map(map) => map.remove(key).await?,
            Table::Multimap(map) => map.remove(key).await?,
        })
    }

    pub(super) async fn remove_all(&self, key: &[u8]) -> Result<u64> {
        Ok(match self {
            Table::Set(set) => set.remove(key).await?.into(),
            Table::Multiset(set) => set.remove_all(key).await?,
            Table::Map(map) => map.remove(key).await?.is_some().into(),
            Table::Multimap(map) => map.remove_all(key).await? as u64,
        })
    }

    pub(super) async fn values(&self, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(match self {
            Table::Set(set) => vec![vec![]; set.contains(key).await?.into()],
            Table::Multiset(set) => vec![vec![]; set.count(key).await? as usize],
            Table::Map(map) => map.get(key).await?.into_iter().collect(),
            Table::Multimap(map) => map.get_all(key).await?,
        })
    }

    pub(super) async fn retrieve(&self, key: &[u8], into: &mut [u8]) -> Result<Option<usize>> {
        match self {
            Table::Map(map) => map.retrieve(key, into).await,
            Table::Multimap(map) => map.retrieve(key, into).await,
            _ => Ok(self.values(key).await?.first().map(Vec::len)),
        }
    }

    /// Returns all elements, by iterator, with the values of each key in order.
    pub(super) async fn content(&self) -> Result<Content> {
        let mut content = Content::new();
        let one = |key| (key, 1, vec![]);
        let mut add = |(key, times, value): (Vec<u8>, u64, Vec<u8>)| {
            content.entry(key).or_default().extend(vec![value; times as usize]);
        };
        macro_rules! go {
            ($table:expr, $item:expr) => {{
                let mut iter = $table.iter();
                while let Some(item) = iter.next().await? {
                    add($item(item));
                }
            }};
        }
        match self {
            Table::Set(set) => go!(set, one),
            Table::Multiset(set) => go!(set, |(key, times)| (key, times, vec![])),
            Table::Map(map) => go!(map, |(key, value)| (key, 1, value)),
            Table::Multimap(map) => go!(map, |(key, value)| (key, 1, value)),
        }
        Ok(content)
    }

    pub(super) async fn len(&self) -> Result<usize> {
        each!(self, table => table.len().await)
    }

    pub(super) async fn is_empty(&self) -> Result<bool> {
        each!(self, table => Ok(table.is_empty().await? && table.is_empty_local().await?))
    }

    pub(super) async fn clear(&self) -> Result<()> {
        each!(self, table => table.clear().await)
    }

    pub(super) async fn first(&self) -> Result<Option<Entry>> {
        each!(self, table => table.first().await)
    }

    pub(super) async fn after(&self, position: Position) -> Result<Option<Entry>> {
        each!(self, table => table.after(position).await)
    }

    pub(super) async fn find(&self, key: &[u8]) -> Result<Option<Entry>> {
        each!(self, table => table.find(key).await)
    }

    pub(super) async fn entry(&self, position: Position) -> Result<Entry> {
        each!(self, table => table.entry(position).await)
    }

    pub(super) async fn destroy(self) -> Result<()> {
        each!(self, table => table.destroy().await)
    }

    pair!(merge, assign, append, swap);
}
