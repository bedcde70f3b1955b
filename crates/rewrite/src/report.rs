//! Parses the server's schema reports; see `contract::report`.
//!
//! Invariant: whatever the server sends, the result is a report or an error.
use contract::report;

/// A message from the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// The complete schema: all records of the preceding [`Report::Part`] messages.
    Whole(Head),
    /// Records belonging to the next [`Report::Whole`].
    Part(Vec<Record>),
    /// What has changed after a version.
    Since(Head, Vec<Record>),
    /// The newest version.
    Version(Head),
    /// The database does not have the extension.
    Without(Head),
    /// Changes made by the open transaction.
    Own(Vec<Record>),
    /// The transaction has committed the changes that were reported; `complete`: there are no
    /// others.
    Done {
        /// The version after it.
        version: u64,
        /// Whether all changes were reported.
        complete: bool,
    },
    /// The transaction's changes were rolled back.
    Undone,
    /// Whether the session has anything but settings that ends with it.
    Kept(bool),
    /// The effective search path.
    Path(Path),
}

/// The subject of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Whether the open transaction has changes of its own, which are included.
    pub own: bool,
    /// Database and server start.
    pub identity: String,
    /// The version after which changes are reported.
    pub from: u64,
    /// The version that they result in.
    pub to: u64,
}

/// The settings that determine a search path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// `search_path`.
    pub search_path: String,
    /// `role`.
    pub role: String,
    /// `session_authorization`.
    pub session: String,
}

/// An effective search path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Path {
    /// The settings that it was derived from.
    pub settings: Settings,
    /// The temporary schema.
    pub temporary: Option<String>,
    /// The schemas that are searched, in order.
    pub schemas: Vec<String>,
}

/// Definition of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// A schema.
    Namespace {
        /// OID.
        oid: u32,
        /// Name.
        name: String,
    },
    /// A type.
    Type(TypeRecord),
    /// A relation.
    Relation(RelationRecord),
    /// A function.
    Function(FunctionRecord),
    /// The object does not exist.
    Gone {
        /// OID of the catalog.
        class: u32,
        /// OID.
        oid: u32,
    },
}

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeRecord {
    /// OID.
    pub oid: u32,
    /// OID of its schema.
    pub namespace: u32,
    /// Name.
    pub name: String,
    /// Relation of a composite type.
    pub relation: u32,
    /// Type that values are made of, for a domain, an array or a range.
    pub part: u32,
    /// Whether it is a domain.
    pub domain: bool,
}

/// A relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelationRecord {
    /// OID.
    pub oid: u32,
    /// OID of its schema.
    pub namespace: u32,
    /// Name.
    pub name: String,
    /// `relkind`.
    pub kind: char,
    /// Type of its rows.
    pub row_type: u32,
    /// Columns.
    pub columns: Vec<ColumnRecord>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnRecord {
    /// Number.
    pub number: i16,
    /// Name.
    pub name: String,
    /// OID of its type.
    pub ty: u32,
    /// Modifier.
    pub modifier: i32,
    /// `GENERATED ALWAYS AS (…) STORED`.
    pub generated: bool,
    /// An identity column.
    pub identity: bool,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionRecord {
    /// OID.
    pub oid: u32,
    /// OID of its schema.
    pub namespace: u32,
    /// Name.
    pub name: String,
    /// Types of input arguments.
    pub inputs: Vec<u32>,
    /// Type of the result.
    pub result: u32,
    /// Types of all arguments, if not all are inputs.
    pub all: Vec<u32>,
    /// Modes of all arguments.
    pub modes: String,
    /// Names of all arguments.
    pub names: Vec<String>,
    /// Element type of a variadic argument.
    pub variadic: u32,
    /// Number of trailing inputs with defaults.
    pub defaults: usize,
    /// Language of the body; empty if the body cannot be analysed.
    pub language: String,
    /// The body.
    pub body: String,
    /// A hash of what else it does.
    pub rest: String,
}

impl Report {
    /// Parses the value of a ParameterStatus of [`report::SETTING`].
    pub fn read(value: &[u8]) -> Result<Report, String> {
        let mut fields = Fields(value);
        let report = match fields.letter()? {
            report::WHOLE => Report::Whole(fields.head()?),
            report::PART => Report::Part(fields.records()?),
            report::SINCE => Report::Since(fields.head()?, fields.records()?),
            report::VERSION => Report::Version(fields.head()?),
            report::WITHOUT => Report::Without(fields.head()?),
            report::OWN => Report::Own(fields.records()?),
            kind @ (report::DONE | report::DONE_MORE) => Report::Done {
                version: fields.number()?,
                complete: kind == report::DONE,
            },
            report::UNDONE => {
                fields.number::<u64>()?;
                Report::Undone
            }
            report::KEPT => Report::Kept(fields.flag()?),
            report::PATH => Report::Path(fields.path()?),
            _ => return Err("unknown report".into()),
        };
        fields
            .0
            .is_empty()
            .then_some(report)
            .ok_or_else(|| "too long".into())
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let cut = || "a field is cut short".to_owned();
        let colon = self
            .0
            .iter()
            .take(10)
            .position(|b| *b == b':')
            .ok_or_else(cut)?;
        let (digits, rest) = self.0.split_at(colon);
        let digits = std::str::from_utf8(digits).map_err(|_| cut())?;
        let length: usize = digits.parse().map_err(|_| cut())?;
        let rest = rest.get(1..).ok_or_else(cut)?;
        let field = rest.get(..length).ok_or_else(cut)?;
        self.0 = rest.get(length..).ok_or_else(cut)?;
        Ok(field)
    }

    fn text(&mut self) -> Result<String, String> {
        // Not UTF-8 if the database encoding is SQL_ASCII.
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let text = std::str::from_utf8(self.bytes()?).ok();
        text.and_then(|t| t.parse().ok())
            .ok_or_else(|| "a field is not a number".into())
    }

    fn flag(&mut self) -> Result<bool, String> {
        Ok(self.number::<u8>()? != 0)
    }

    fn letter(&mut self) -> Result<u8, String> {
        match self.bytes()? {
            [letter] => Ok(*letter),
            _ => Err("expected a letter".into()),
        }
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let count: usize = self.number()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn head(&mut self) -> Result<Head, String> {
        Ok(Head {
            own: self.flag()?,
            identity: self.text()?,
            from: self.number()?,
            to: self.number()?,
        })
    }

    fn path(&mut self) -> Result<Path, String> {
        let settings = Settings {
            search_path: self.text()?,
            role: self.text()?,
            session: self.text()?,
        };
        let temporary = Some(self.text()?).filter(|name| !name.is_empty());
        // A schema that was just dropped has no name.
        let mut schemas = self.list(Self::text)?;
        schemas.retain(|name| !name.is_empty());
        Ok(Path {
            settings,
            temporary,
            schemas,
        })
    }

    fn records(&mut self) -> Result<Vec<Record>, String> {
        let mut records = Vec::new();
        while !self.0.is_empty() {
            records.push(self.record()?);
        }
        Ok(records)
    }

    fn record(&mut self) -> Result<Record, String> {
        Ok(match self.letter()? {
            report::NAMESPACE => Record::Namespace {
                oid: self.number()?,
                name: self.text()?,
            },
            report::TYPE => Record::Type(TypeRecord {
                oid: self.number()?,
                namespace: self.number()?,
                name: self.text()?,
                relation: self.number()?,
                part: self.number()?,
                domain: self.flag()?,
            }),
            report::RELATION => Record::Relation(RelationRecord {
                oid: self.number()?,
                namespace: self.number()?,
                name: self.text()?,
                kind: char::from(self.letter()?),
                row_type: self.number()?,
                columns: self.columns()?,
            }),
            report::FUNCTION => Record::Function(FunctionRecord {
                oid: self.number()?,
                namespace: self.number()?,
                name: self.text()?,
                inputs: self.list(Self::number)?,
                result: self.number()?,
                all: self.list(Self::number)?,
                modes: self.text()?,
                names: self.list(Self::text)?,
                variadic: self.number()?,
                defaults: self.number()?,
                language: self.text()?,
                body: self.text()?,
                rest: self.text()?,
            }),
            report::GONE => Record::Gone {
                class: self.number()?,
                oid: self.number()?,
            },
            _ => return Err("unknown record".into()),
        })
    }

    fn columns(&mut self) -> Result<Vec<ColumnRecord>, String> {
        let mut columns = Vec::new();
        loop {
            match self.letter()? {
                report::COLUMN => columns.push(ColumnRecord {
                    number: self.number()?,
                    name: self.text()?,
                    ty: self.number()?,
                    modifier: self.number()?,
                    generated: self.flag()?,
                    identity: self.flag()?,
                }),
                report::END => return Ok(columns),
                _ => return Err("expected a column".into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields as the server writes them.
    fn value(fields: &[&str]) -> Vec<u8> {
        let one = |f: &&str| format!("{}:{f}", f.len());
        fields.iter().map(one).collect::<String>().into_bytes()
    }

    /// A name may have anything in it: nothing of it is taken for structure.
    #[test]
    fn names_are_not_structure() {
        let name = "t1:x2:16\u{1f}\n3:abc";
        let read = Report::read(&value(&["O", "n", "5", name]));
        let name = name.to_owned();
        assert_eq!(
            read,
            Ok(Report::Own(vec![Record::Namespace { oid: 5, name }]))
        );
    }

    /// What is cut short, anywhere, is an error.
    #[test]
    fn cut_short() {
        let whole = value(&[
            "S", "0", "id", "3", "4", "r", "1", "2", "t", "r", "9", "c", "1", "a", "23", "-1", "0",
            "1", "e", "x", "1259", "7",
        ]);
        let Ok(Report::Since(head, records)) = Report::read(&whole) else {
            panic!("not read");
        };
        assert_eq!((head.from, head.to, records.len()), (3, 4, 2));
        for length in 0..whole.len() {
            match Report::read(&whole[..length]) {
                Ok(Report::Since(_, fewer)) => assert_eq!(fewer, records[..fewer.len()]),
                Ok(other) => panic!("{other:?}"),
                Err(_) => {}
            }
        }
        assert!(Report::read(&value(&["O", "n", "5"])).is_err());
        assert!(Report::read(&value(&["V", "0", "id", "0", "18446744073709551616"])).is_err());
        assert!(Report::read(&value(&["C", "1", "2"])).is_err());
        assert!(Report::read(b"99999999999999999999:O").is_err());
    }
}
