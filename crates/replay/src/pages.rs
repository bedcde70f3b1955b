//! Searches of pages that a channel has sent before (`Descend`), each taken in as the search of one
//! page that it comes to.
//!
//! Not here: answers. A clone's backends are told that no page is remembered, and ask about each.

use crate::ask;
use crate::here::Here;
use crate::session::Page;
use contract::codec::{Fixed, List, Part};
use contract::message::table::Place;
use contract::{Fid, Kind, answer, body};

impl Here<'_> {
    /// Takes in a message and its answer.
    pub(crate) fn descended(&mut self, message: &[u8], answered: &[u8]) -> Option<()> {
        let body = body::Descend::decode(message).ok()?;
        let values = body.values as usize;
        if body.columns > 0 {
            let page = Page {
                keys: body.keys as usize,
                fids: body.fids.iter().collect(),
            };
            self.channel.pages.insert(body.page, page);
        }
        if !self.learns {
            return None;
        }
        let answer = answer::Descend::decode(answered).ok()?;
        let mut rest = answer.places.bytes();
        for number in answer.pages.iter() {
            let (places, tail) = rest.split_at_checked(values * Place::BYTES)?;
            rest = tail;
            let page = self.channel.pages.get(&number)?;
            let fids = page.fids.get(..values.checked_mul(page.keys)?)?;
            let mut bytes = Vec::with_capacity(fids.len() * Fid::BYTES);
            fids.iter().for_each(|fid| fid.put(&mut bytes));
            let alone = ask::encoded(&body::Search {
                values: body.values,
                keys: page.keys as u32,
                sought: body.sought,
                columns: List::new(&bytes),
            });
            let asked = ask::whole(self, Kind::Search, &alone)?;
            self.keep(asked, places);
            self.searched(&alone, places);
        }
        Some(())
    }
}
