//! The cells of a result, with their texts in one piece: a keeper that signs many results does not
//! take and free memory for each cell.

/// Cells in text format, row by row; `None` is NULL.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Cells {
    texts: String,
    places: Vec<Place>,
}

/// Where a text ends; it begins where the one before ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    end: usize,
    null: bool,
}

impl Cells {
    /// Appends a cell.
    pub fn push(&mut self, cell: Option<&str>) {
        self.texts.push_str(cell.unwrap_or_default());
        self.places.push(Place {
            end: self.texts.len(),
            null: cell.is_none(),
        });
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.texts.len()
    }

    /// Returns a cell, if there are so many.
    pub fn get(&self, at: usize) -> Option<Option<&str>> {
        let place = self.places.get(at)?;
        let before = at.checked_sub(1).and_then(|at| self.places.get(at));
        let begin = before.map_or(0, |place| place.end);
        let text = self.texts.get(begin..place.end)?;
        Some((!place.null).then_some(text))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.range(0..self.len())
    }

    /// Those of a row of so many columns.
    pub(super) fn row(&self, row: usize, columns: usize) -> impl Iterator<Item = Option<&str>> {
        let first = row.saturating_mul(columns);
        self.range(first..first.saturating_add(columns))
    }

    fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Option<&str>> {
        range.map_while(|at| self.get(at))
    }
}

impl<T: AsRef<str>> FromIterator<Option<T>> for Cells {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(iter: I) -> Cells {
        let mut cells = Cells::default();
        for cell in iter {
            cells.push(cell.as_ref().map(AsRef::as_ref));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NULL and the empty text are two things, wherever they are.
    #[test]
    fn texts_and_nulls() {
        let given = [None, Some("a"), Some(""), None, Some("bc"), Some("")];
        let cells: Cells = given.iter().copied().collect();
        assert_eq!(cells.iter().collect::<Vec<_>>(), given);
        assert_eq!(cells.row(1, 3).collect::<Vec<_>>(), given[3..]);
        assert_eq!(cells.row(2, 3).count(), 0);
        assert_eq!((cells.len(), cells.bytes()), (6, 3));
        assert_eq!(cells.get(6), None);
        let other: Cells = [Some("")].iter().copied().collect();
        assert_ne!(other, [None::<&str>].into_iter().collect());
    }
}
