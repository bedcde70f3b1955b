//! Operators and functions on arrays of protected values, which PostgreSQL itself has: only the
//! literals and parameters among their arguments change.

use super::{Infer, Res};
use crate::value::{Class, Val};
use contract::TypeCode;
use grant::family;

/// What a function takes as an argument.
#[derive(Clone, Copy)]
enum Takes {
    Array,
    Element,
    /// A position or a number of elements.
    Count,
}

/// The arguments of a function of arrays, and whether it compares elements.
fn function(name: &str) -> Option<(&'static [Takes], bool)> {
    use Takes::{Array, Count, Element};
    Some(match name {
        "array_append" => (&[Array, Element], false),
        "array_prepend" => (&[Element, Array], false),
        "array_cat" => (&[Array, Array], false),
        "trim_array" => (&[Array, Count], false),
        "array_remove" | "array_positions" => (&[Array, Element], true),
        "array_replace" => (&[Array, Element, Element], true),
        "array_position" => (&[Array, Element, Count], true),
        _ => return None,
    })
}

impl Infer<'_> {
    /// The element of an array of protected values.
    pub fn protected_element(&self, val: &Val) -> Option<Val> {
        match &val.class {
            Class::Array(element) if self.enc(element).is_some() => Some((**element).clone()),
            _ => None,
        }
    }

    /// An array, or a literal of one, meets arrays with this element.
    pub fn meet_array(&mut self, element: &Val, val: &Val, at: i32) -> Res<()> {
        let val = self.arrayed(val);
        self.say_elements(element, &val);
        self.meet(&Val::array(element.clone()), &val, at)
    }

    fn meet_element(&mut self, element: &Val, val: &Val, at: i32) -> Res<()> {
        self.compare(element, val, at)
    }

    /// `@>`, `<@`, `&&`, `||` of an array of protected values and something else; `None` if it is
    /// none of these.
    pub fn array_operator(&mut self, name: &str, l: &Val, r: &Val, at: i32) -> Res<Option<Val>> {
        let compares = matches!(name, "@>" | "<@" | "&&");
        if !compares && name != "||" {
            return Ok(None);
        }
        let (array, element, other) = match (self.protected_element(l), self.protected_element(r)) {
            (Some(element), _) => (l, element, r),
            (None, Some(element)) => (r, element, l),
            _ => return Ok(None),
        };
        // An untyped literal beside an array is one.
        let alike = compares || other.bare() || matches!(other.class, Class::Array(_));
        if matches!(other.class, Class::Row(_) | Class::Soft(_) | Class::Unknown) {
            return Ok(None);
        }
        if compares {
            self.authority.does(family::COMPARE);
        }
        match alike {
            true => self.meet_array(&element, other, at)?,
            false => self.meet_element(&element, other, at)?,
        }
        Ok(Some(match compares {
            true => Val::boolean(),
            false => array.clone(),
        }))
    }

    /// A function of arrays, one of which has protected elements.
    pub fn array_function(&mut self, name: &str, vals: &[Val], at: i32) -> Res<Option<Val>> {
        let Some((takes, compares)) = function(name) else {
            return Ok(None);
        };
        let array = vals.iter().find(|v| self.protected_element(v).is_some());
        let Some((array, element)) = array.and_then(|a| Some((a, self.protected_element(a)?)))
        else {
            return Ok(None);
        };
        if compares {
            self.authority.does(family::COMPARE);
        }
        for (val, takes) in vals.iter().zip(takes) {
            match takes {
                Takes::Array => self.meet_array(&element, val, at)?,
                Takes::Element => self.meet_element(&element, val, at)?,
                Takes::Count => self.note_plain(val),
            }
        }
        Ok(Some(match name {
            "array_position" => Val::plain(Some(TypeCode::Int4)),
            "array_positions" => Val::plain(None),
            _ => array.clone(),
        }))
    }
}
