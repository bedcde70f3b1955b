//! `Descend`: searches of an index's pages that the channel has sent before, from one page down to the next.
//!
//! Pages are lists of FIDs under numbers that the database gives them; whether they still stand so in its index, it
//! finds out. What is remembered is what [`super::search`] is told with each message, and no value.
//!
//! Invariants: each comparison is one that the session may have declassified alone, asked for by a message of its own; no channel
//! remembers more than [`REMEMBERED_MAX`] FIDs; a recording has each page that was searched, also one that was sent before it began.

use super::Connection;
use crate::fail::{self, Failure};
use contract::codec::{List, Part};
use contract::message::ROWS_MAX;
use contract::message::search::{
    BESIDE, LEVELS_MAX, NO_PAGE, PAGES_MAX, REMEMBERED_MAX, UNKNOWN, VALUES_MAX,
};
use contract::message::table::Place;
use contract::{Fid, Kind, answer, body};
use recording::Outcome;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// A page, as it was sent.
struct Page {
    columns: usize,
    count: usize,
    /// Column by column.
    keys: Vec<Fid>,
    /// Which of all pages that were ever stored it is.
    stored: u64,
    /// Its children that were sent, by the number of keys before them: page and [`Page::stored`].
    below: HashMap<u32, (u32, u64)>,
    /// The file of a recording that has it (`tape`).
    recorded: u64,
}

/// The pages of a channel.
#[derive(Default)]
pub(super) struct Pages {
    pages: HashMap<u32, Page>,
    fids: usize,
    stored: u64,
    forgotten: u32,
    /// Those that the last message searched.
    searched: Vec<u32>,
}

impl Pages {
    /// Remembers the page of a message, if it brings one.
    fn keep(&mut self, body: &body::Descend<'_>) -> Result<(), Failure> {
        let (columns, count) = (body.columns as usize, body.keys as usize);
        if columns == 0 {
            self.link(body);
            return Ok(());
        }
        if columns > VALUES_MAX
            || count > ROWS_MAX
            || columns * count != body.fids.len()
            || body.page >= PAGES_MAX
        {
            return Err(fail::malformed("The page is not one.").into());
        }
        self.forget(body.page);
        if self.fids + body.fids.len() > REMEMBERED_MAX {
            self.forget_all();
        }
        self.stored += 1;
        self.fids += body.fids.len();
        let page = Page {
            columns,
            count,
            keys: body.fids.iter().collect(),
            stored: self.stored,
            below: HashMap::new(),
            recorded: 0,
        };
        self.pages.insert(body.page, page);
        self.link(body);
        Ok(())
    }

    /// Remembers which child of which page the message's is.
    fn link(&mut self, body: &body::Descend<'_>) {
        let stored = self.pages.get(&body.page).map(|page| page.stored);
        let above = self.pages.get_mut(&body.above);
        let above = above.filter(|above| body.child as usize <= above.count);
        if let (Some(stored), Some(above)) = (stored, above) {
            above.below.insert(body.child, (body.page, stored));
        }
    }

    fn forget(&mut self, number: u32) {
        if let Some(page) = self.pages.remove(&number) {
            self.fids = self.fids.saturating_sub(page.keys.len());
        }
    }

    /// As if none had been sent. The answer to the next message says so.
    fn forget_all(&mut self) {
        *self = Pages {
            stored: self.stored,
            forgotten: self.forgotten.wrapping_add(1),
            ..Pages::default()
        };
    }

    /// The child where a value belongs, which equals no key of the page; none if it is not known.
    fn child(&self, page: &Page, place: Place) -> Option<u32> {
        if place.less != place.up_to || place.less == UNKNOWN {
            return None;
        }
        let (number, stored) = page.below.get(&place.less)?;
        let child = self.pages.get(number)?;
        (child.stored == *stored).then_some(*number)
    }
}

impl Connection {
    pub(super) fn descend(&mut self, body: body::Descend<'_>) -> Result<(), Failure> {
        let values = body.sought.len();
        let beside = body.sought.iter().any(|value| value.flags & BESIDE != 0);
        if values == 0 || values > VALUES_MAX || beside {
            return Err(fail::malformed("There are no such values.").into());
        }
        let mut pages = std::mem::take(&mut self.pages);
        pages.searched.clear();
        let done = pages.keep(&body).and_then(|()| self.walk(&pages, &body));
        let forgotten = pages.forgotten;
        if let Ok(levels) = &done {
            pages.searched.extend(levels);
        }
        self.pages = pages;
        let levels = done?;
        let mut numbers = Vec::with_capacity(4 * levels.len());
        for number in &levels {
            numbers.extend_from_slice(&number.to_le_bytes());
        }
        let places = std::mem::take(&mut self.reply);
        self.answer(&answer::Descend {
            forgotten,
            levels: levels.len() as u32,
            pages: List::new(&numbers),
            places: List::new(&places),
        });
        Ok(())
    }

    /// Records the pages that the last message searched, as if they were sent again, unless this file
    /// of the recording has them. `sent`: the one that the message brought.
    pub(super) fn tell_pages(&mut self, at: (u64, u64), sent: u32) {
        let Some(tape) = &self.tape else {
            return;
        };
        let (part, wanted) = (tape.part(), tape.is_wanted());
        let mut pages = std::mem::take(&mut self.pages);
        for number in &pages.searched {
            let Some(page) = pages.pages.get_mut(number) else {
                continue;
            };
            if page.recorded != part && *number != sent {
                let fids: Vec<u8> = page
                    .keys
                    .iter()
                    .flat_map(|fid| fid.0.to_le_bytes())
                    .collect();
                let mut message = Vec::new();
                body::Descend {
                    page: *number,
                    above: NO_PAGE,
                    child: 0,
                    values: 0,
                    columns: page.columns as u32,
                    keys: page.count as u32,
                    sought: List::new(&[]),
                    fids: List::new(&fids),
                }
                .put(&mut message);
                let mut answer = Vec::new();
                answer::Descend {
                    forgotten: pages.forgotten,
                    levels: 0,
                    pages: List::new(&[]),
                    places: List::new(&[]),
                }
                .put(&mut answer);
                tape.note(Kind::Descend, &message, at, Outcome::Answer(&answer));
            }
            if wanted {
                page.recorded = part;
            }
        }
        self.pages = pages;
    }

    /// Replies with places, page by page; which pages these are.
    fn walk(&mut self, pages: &Pages, body: &body::Descend<'_>) -> Result<Vec<u32>, Failure> {
        let values = body.sought.len();
        let mut levels = Vec::new();
        let mut next = Some(body.page).filter(|page| *page != NO_PAGE);
        while let Some(number) = next.take() {
            let page = pages.pages.get(&number);
            let Some(page) = page.filter(|page| page.columns >= values) else {
                break;
            };
            let begin = self.reply.len();
            let keys = page.keys.get(..values * page.count).unwrap_or(&[]);
            let done = self.places(body.sought, page.count, keys);
            // Of a page that nobody asked about by itself nothing is said that is not plain.
            let plain = done.as_ref().is_ok_and(|place| place.less != UNKNOWN);
            if !levels.is_empty() && !plain {
                self.reply.truncate(begin);
                break;
            }
            let place = done?;
            self.session.counters.searches.fetch_add(1, Relaxed);
            levels.push(number);
            if levels.len() < LEVELS_MAX {
                next = pages.child(page, place);
            }
        }
        Ok(levels)
    }
}
