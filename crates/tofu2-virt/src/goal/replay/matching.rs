//! Matching of messages and receives, in the order in which they arrived and were posted.
//!
//! A [channel](super::channels) has the messages of one source with one tag to one rank, so its first
//! is the one that matches. A rank with wildcards has, besides, its receives with wildcards and all
//! messages that arrived, each in order.

use super::{Machine, channels::NO_CHANNEL};
use crate::goal::schedule::{ANY, Kind};

impl Machine {
    /// Takes the first posted receive that matches a message. If there is none, keeps the message for
    /// a later one.
    pub(super) fn posted_receive(&mut self, message: u32) -> Option<u32> {
        let op = self.ops[message as usize];
        let in_channel = (op.tag != NO_CHANNEL)
            .then(|| self.channels[op.tag as usize].front(&self.ops))
            .flatten()
            .filter(|first| self.ops[*first as usize].kind == Kind::Posted);
        if !self.wildcards.is_empty()
            && let Some(rank) = self.wildcards.get_mut(&op.peer)
        {
            let tag = self.tags[message as usize];
            let ops = &self.ops;
            let matching = rank.posted.iter().position(|receive| {
                let receive = *receive as usize;
                [ANY, op.rank].contains(&ops[receive].peer) && [ANY, tag].contains(&self.tags[receive])
            });
            if let Some(at) = matching {
                let with_wildcard = rank.posted[at];
                let posted = |receive: u32| ops[receive as usize].stamp;
                if in_channel.is_none_or(|first| posted(with_wildcard) < posted(first)) {
                    return rank.posted.remove(at);
                }
            }
            if in_channel.is_none() {
                rank.arrived.push_back(message);
            }
        }
        if in_channel.is_some() {
            self.channels[op.tag as usize].pop(&mut self.ops)
        } else {
            if op.tag != NO_CHANNEL {
                self.channels[op.tag as usize].push(&mut self.ops, message);
            }
            None
        }
    }

    /// Takes the first message that matches a receive. If there is none, posts the receive.
    pub(super) fn unreceived_message(&mut self, receive: u32) -> Option<u32> {
        let op = self.ops[receive as usize];
        if op.tag == NO_CHANNEL {
            return self.any_message(receive);
        }
        let channel = &mut self.channels[op.tag as usize];
        let first = channel.front(&self.ops);
        if first.is_some_and(|first| self.ops[first as usize].kind != Kind::Posted) {
            if !self.wildcards.is_empty()
                && let Some(rank) = self.wildcards.get_mut(&op.rank)
            {
                rank.taken += 1;
                // It is finished only after this; the others that are gone are.
                let first = first.unwrap_or_default();
                rank.forget_taken(|message| message == first || self.ops[message as usize].kind == Kind::Finished);
            }
            return channel.pop(&mut self.ops);
        }
        self.post(receive);
        self.channels[op.tag as usize].push(&mut self.ops, receive);
        None
    }

    /// Takes the first message that matches a receive with wildcards.
    fn any_message(&mut self, receive: u32) -> Option<u32> {
        let (op, tag) = (self.ops[receive as usize], self.tags[receive as usize]);
        let rank = self.wildcards.entry(op.rank).or_default();
        let matching = rank.arrived.iter().position(|message| {
            let (index, message) = (*message as usize, &self.ops[*message as usize]);
            message.kind != Kind::Finished
                && [ANY, message.rank].contains(&op.peer)
                && [ANY, self.tags[index]].contains(&tag)
        });
        if let Some(at) = matching {
            let message = rank.arrived.remove(at)?;
            let channel = self.ops[message as usize].tag;
            if channel != NO_CHANNEL {
                // Messages of a channel arrive in order, so this is its first.
                let first = self.channels[channel as usize].pop(&mut self.ops);
                debug_assert_eq!(first, Some(message));
            }
            return Some(message);
        }
        rank.posted.push_back(receive);
        self.post(receive);
        None
    }

    fn post(&mut self, receive: u32) {
        let op = &mut self.ops[receive as usize];
        op.kind = Kind::Posted;
        op.stamp = self.posted;
        self.posted += 1;
    }
}
