//! Analyses a text: parsing, an inference per statement, and the effects of each statement on later
//! ones in the same text.

use crate::analysis::{Analysis, bare};
use crate::authorise::Authorise;
use crate::depth;
use crate::edit::{Edit, Piece};
use crate::effect::{Effect, Extra};
use crate::finish::Outcome;
use crate::immutable::Immutable;
use crate::infer::{Infer, Res};
use crate::kind::{Traits, traits};
use crate::later;
use crate::others::{meeting, opened};
use crate::past::Past;
use crate::reach::Reach;
use crate::refusal::Refusal;
use crate::relation::Relation;
use crate::schema::Schema;
use crate::secret::Secrets;
use crate::signature::Signature;
use crate::statement::{ParamUse, Prepared, PreparedInfo, Statement, StatementKind, Transaction};
use crate::tokens::Tokens;
use grant::Grant;
use pg_query::protobuf::{RawStmt, Token};
use pg_query::{Node, NodeEnum};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of inference runs for a statement. The set of literals known to be protected
/// grows each time.
const RUNS: usize = 8;

/// Analyses a text of one or more statements.
pub fn analyze(sql: &str, schema: &Schema) -> Result<Vec<Statement>, Refusal> {
    analyze_with(sql, schema, &Prepared::default())
}

/// Like [`analyze_with`], for a statement whose parameters with these numbers are sealed as well,
/// because their values equal those of sealed parameters.
pub fn analyze_sealing(
    sql: &str,
    schema: &Schema,
    prepared: &Prepared,
    sealed: &[u32],
) -> Result<Vec<Statement>, Refusal> {
    let list = analyses_sealing(sql, schema, prepared, sealed)?;
    Ok(list.into_iter().map(|a| a.statement).collect())
}

/// Like [`analyze`], with the session's prepared statements, which `EXECUTE` needs.
pub fn analyze_with(
    sql: &str,
    schema: &Schema,
    prepared: &Prepared,
) -> Result<Vec<Statement>, Refusal> {
    let list = analyses(sql, schema, prepared)?;
    Ok(list.into_iter().map(|a| a.statement).collect())
}

/// Whether the text is SQL that must not be sent to the server as a value.
pub fn hides_secrets(text: &str, schema: &Schema) -> bool {
    later::hides_secrets(text, schema, analyze)
}

pub(crate) fn analyses(
    sql: &str,
    schema: &Schema,
    prepared: &Prepared,
) -> Result<Vec<Analysis>, Refusal> {
    analyses_sealing(sql, schema, prepared, &[])
}

fn analyses_sealing(
    sql: &str,
    schema: &Schema,
    prepared: &Prepared,
    sealed: &[u32],
) -> Result<Vec<Analysis>, Refusal> {
    if sql.contains('\0') || i32::try_from(sql.len()).is_err() {
        return Err(Refusal::new(
            "22021",
            "the statement has a zero byte or is too long",
        ));
    }
    let reaches = || Reach::of(&[schema], prepared).words(sql);
    let scanned = Tokens::scan(sql).and_then(|tokens| {
        let deep = depth::bound(tokens.all())?;
        Ok((tokens, deep))
    });
    let (tokens, deep) = match scanned {
        Ok(scanned) => scanned,
        Err(refusal) if reaches() => return Err(refusal),
        Err(_) => return Ok(vec![unread(sql)]),
    };
    if let Some(signature) = Signature::of(sql, &tokens) {
        let plain = analyses_sealing(&signature.plain, schema, prepared, sealed)?;
        return signature.wrap(sql, plain);
    }
    if let Some(immutable) = Immutable::of(sql, &tokens) {
        return Ok(immutable.replace(analyses(&immutable.plain, schema, prepared)?));
    }
    if let Some(secrets) = Secrets::of(sql, &tokens) {
        return Ok(secrets.replace(analyses(&secrets.plain, schema, prepared)?));
    }
    if let Some(call) = Authorise::of(sql, &tokens) {
        return call.analysis(authorised(&call.definition, schema));
    }
    with_stack(deep, || statements(sql, &tokens, schema, prepared, sealed))
}

/// Runs a function that recurses this deeply, on a larger stack if necessary.
fn with_stack<T: Send>(deep: usize, run: impl FnOnce() -> Res<T> + Send) -> Res<T> {
    if deep <= depth::INLINE {
        return run();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(depth::STACK)
            .spawn_scoped(scope, run);
        match thread.map(|t| t.join()) {
            Ok(Ok(result)) => result,
            _ => Err(Refusal::new("54001", "the statement is too complex")),
        }
    })
}

/// The standing grant of existing definitions ([`crate::authorise`]).
pub(crate) fn authorised(sql: &str, schema: &Schema) -> Res<Grant> {
    let tokens = Tokens::scan(sql)?;
    let deep = depth::bound(tokens.all())?;
    let one = |raw: &RawStmt, node: &Node| {
        let traits = traits(node);
        if traits.kind != StatementKind::Ddl {
            return Err(Refusal::unsupported("only definitions can be authorised")
                .hint("confide.definitions(schema) shows those of a schema."));
        }
        let mut infer = Infer::new(sql, &tokens, schema, meeting);
        infer.range = statement_range(sql, &tokens, raw);
        infer.authorising = true;
        let extra = inferred(&mut infer, node, &Prepared::default())?;
        Ok(infer.grant(&traits.kind, &BTreeMap::new(), &extra.effects))
    };
    with_stack(deep, || {
        let parsed = pg_query::parse(sql, 0).map_err(|error| syntax_error(sql, &tokens, &error))?;
        let mut all = Grant::default();
        for raw in &parsed.protobuf.stmts {
            if let Some(node) = raw.stmt.as_deref() {
                all.extend(&one(raw, node)?);
            }
        }
        all.entries.retain(|entry| entry.standing);
        Ok(all)
    })
}

fn statements(
    sql: &str,
    tokens: &Tokens,
    first: &Schema,
    prepared: &Prepared,
    sealed: &[u32],
) -> Res<Vec<Analysis>> {
    let parsed = match pg_query::parse(sql, 0) {
        Ok(parsed) => parsed.protobuf.stmts,
        Err(error) if Reach::of(&[first], prepared).tokens(sql, tokens, &(0..sql.len())) => {
            return Err(syntax_error(sql, tokens, &error));
        }
        // The server's grammar may differ: it will report what is wrong, if anything is.
        Err(_) => return Ok(vec![unread(sql)]),
    };
    let mut schema = Cow::Borrowed(first);
    let mut prepared = Cow::Borrowed(prepared);
    let mut list = Vec::new();
    let mut past = Past::default();
    let mut begun = None;
    let last = parsed.len().saturating_sub(1);
    for (index, raw) in parsed.iter().enumerate() {
        let schemas = [first, &*schema];
        let reach = || Reach::of(&schemas, &prepared);
        let given = (&*schema, &*prepared, sealed);
        let mut one = statement(sql, tokens, raw, given, reach)?;
        one.statement.apart = last > 0 && !reach().tokens(sql, tokens, &one.statement.range);
        past.check(&one.statement, sql, tokens)?;
        if index < last {
            past.take(&one.statement, &mut one.effects, &schema);
            match one.statement.kind {
                StatementKind::TransactionControl(Transaction::Begin) => {
                    begun = Some(schema.clone());
                }
                // `undone` handles a transaction that began before this text.
                StatementKind::TransactionControl(Transaction::Rollback) => {
                    schema = begun.take().unwrap_or(schema);
                }
                _ => {}
            }
            for effect in one.effects.drain(..) {
                apply(effect, schema.to_mut());
            }
            if let (StatementKind::Prepare { name }, Some(info)) =
                (&one.statement.kind, &one.statement.prepare)
            {
                prepared.to_mut().insert(name.clone(), info.clone());
            }
        }
        list.push(one);
    }
    if list.iter().any(|one| one.statement.touches_protected) {
        take_comments(sql, tokens, &mut list);
    }
    Ok(list)
}

/// Removes comments from statements that touch something protected, since tools put values into
/// comments. Planner hints (`/*+ ... */`) are kept.
fn take_comments(sql: &str, tokens: &Tokens, list: &mut [Analysis]) {
    let last = list.len().saturating_sub(1);
    for comment in tokens.comments() {
        if sql
            .get(comment.clone())
            .is_some_and(|c| c.starts_with("/*+"))
        {
            continue;
        }
        let behind = |one: &Analysis| one.statement.range.end >= comment.start;
        let at = list.iter().position(behind).unwrap_or(last);
        let Some(one) = list.get_mut(at) else { return };
        let edits = &mut one.statement.edits;
        let within = |e: &Edit| e.range.start < comment.end && comment.start < e.range.end;
        if !edits.iter().any(within) {
            let place = edits.partition_point(|e| e.range.start < comment.start);
            let pieces = vec![Piece::Text(" ".into())];
            let range = comment.clone();
            edits.insert(place, Edit { range, pieces });
        }
    }
}

/// A text that is passed on without being parsed. It may do anything that does not involve
/// protected objects.
fn unread(sql: &str) -> Analysis {
    let mut traits = Traits::of(StatementKind::Other);
    traits.changes_schema = true;
    traits.changes_search_path = true;
    let mut unread = bare(0..sql.len(), traits);
    unread.statement.clear_values = true;
    unread
}

fn apply(effect: Effect, schema: &mut Schema) {
    match effect {
        Effect::Relation(relation) => schema.add_relation(relation),
        Effect::Temporary => {
            if schema.temp().is_none() {
                schema.set_temp(Some("pg_temp".into()));
            }
        }
        Effect::Gone(relation) => {
            let Relation {
                schema: place,
                name,
                ..
            } = relation;
            schema.remove_relation(&place, &name);
        }
        Effect::Domain(place, name, ty) => schema.add_type(&place, &name, 0, (ty, true)),
        Effect::Unsure(_) | Effect::Lost => {}
    }
}

/// Runs the inference until no literal turns out to be protected after it was used as plain.
fn inferred<'a>(infer: &mut Infer<'a>, node: &Node, prepared: &Prepared) -> Res<Extra> {
    let mut result = infer.statement(node, prepared);
    for _ in 0..RUNS {
        let Some((forced, echoes)) = infer.again().filter(|_| result.is_ok()) else {
            break;
        };
        let next = Infer::new(infer.sql, infer.tokens, infer.schema, infer.meeting);
        let range = infer.range.clone();
        let authorising = infer.authorising;
        *infer = Infer {
            range,
            authorising,
            forced,
            echoes,
            ..next
        };
        result = infer.statement(node, prepared);
    }
    result
}

/// The inference before its first run. Parameters with the numbers in `sealed` are protected from
/// the start.
fn starting<'a>(
    sql: &'a str,
    tokens: &'a Tokens,
    schema: &'a Schema,
    range: &Range<usize>,
    sealed: &[u32],
) -> Infer<'a> {
    let forced = parameters_at(sql, tokens, range, sealed);
    Infer {
        range: range.clone(),
        echoes: forced.clone(),
        forced,
        ..Infer::new(sql, tokens, schema, meeting)
    }
}

fn statement<'a>(
    sql: &str,
    tokens: &Tokens,
    raw: &RawStmt,
    (schema, prepared, sealed): (&Schema, &Prepared, &[u32]),
    reach: impl Fn() -> Reach<'a>,
) -> Res<Analysis> {
    let range = statement_range(sql, tokens, raw);
    let Some(node) = raw.stmt.as_deref() else {
        return Ok(bare(range, Traits::of(StatementKind::Empty)));
    };
    let traits = traits(node);
    let mut infer = starting(sql, tokens, schema, &range, sealed);
    let result =
        inferred(&mut infer, node, prepared).and_then(|extra| Ok((extra, infer.finish(&range)?)));
    let (extra, outcome) = match result {
        Ok(done) => done,
        // PostgreSQL will report what is wrong, if anything is.
        Err(refusal)
            if !refusal.certain
                && !infer.touches_protected
                && !reach().tokens(sql, tokens, &range) =>
        {
            later::check(sql, tokens, &range, |_| false, schema, analyze)?;
            return Ok(passed_on(&refusal, sql, tokens, &range, traits));
        }
        Err(refusal) => return Err(refusal.at(i32::try_from(range.start).unwrap_or(-1))),
    };
    let edited = |r: &Range<usize>| {
        outcome
            .edits
            .iter()
            .any(|e| e.range.start <= r.start && r.end <= e.range.end)
    };
    let clear_values = tokens.values(&range).any(|(_, r)| !edited(&r));
    use NodeEnum::{CreateFunctionStmt, DoStmt};
    if !matches!(node.node, Some(CreateFunctionStmt(_) | DoStmt(_))) {
        later::check(sql, tokens, &range, edited, schema, analyze)?;
    }
    Ok(understood(infer, traits, extra, outcome, clear_values))
}

/// Which values are fitted to a column: those of statements that store them themselves.
fn fitting(kind: &StatementKind, outcome: Outcome) -> Outcome {
    match kind {
        StatementKind::Dml | StatementKind::Prepare { .. } => outcome,
        // A definition keeps its constants.
        _ => outcome.without_fits(),
    }
}

/// A statement that the inference understands completely.
fn understood(
    mut infer: Infer<'_>,
    traits: Traits,
    extra: Extra,
    outcome: Outcome,
    clear_values: bool,
) -> Analysis {
    let outcome = fitting(&traits.kind, outcome);
    let params = outcome.params;
    let mut cursors = std::mem::take(&mut infer.cursors);
    cursors.extend(opened(infer.schema, &infer.called));
    let prepare = matches!(traits.kind, StatementKind::Prepare { .. }).then(|| PreparedInfo {
        params: params.clone(),
        touches_protected: infer.touches_protected,
        results: infer.results.clone(),
        late: infer.late,
        cursors: cursors.clone(),
    });
    let grant = infer
        .touches_protected
        .then(|| infer.grant(&traits.kind, &params, &extra.effects))
        .filter(|grant| !grant.is_empty())
        .map(|grant| Arc::from(grant.encode()));
    let statement = Statement {
        range: infer.range.clone(),
        kind: traits.kind,
        clear_values,
        edits: outcome.edits,
        // The parameters of PREPARE belong to the prepared statement.
        params: match prepare {
            Some(_) => BTreeMap::new(),
            None => params,
        },
        touches_protected: infer.touches_protected,
        changes_schema: traits.changes_schema || extra.changes_schema,
        changes_search_path: traits.changes_search_path || infer.sets_config,
        depends_on_search_path: infer.depends_on_search_path,
        compared: infer.compared_parameters(),
        results: infer.results.take(),
        late: infer.late,
        cursors,
        unresolved: infer.unresolved,
        apart: false,
        grant,
        copy: extra.copy,
        recoding: extra.recoding,
        prepare,
    };
    Analysis {
        statement,
        effects: extra.effects,
        free: outcome.free,
        unique: false,
        absent: None,
        open: outcome.open,
    }
}

/// A statement that is not understood and is passed on unchanged.
fn passed_on(
    refusal: &Refusal,
    sql: &str,
    tokens: &Tokens,
    range: &Range<usize>,
    traits: Traits,
) -> Analysis {
    let mut bare = bare(range.clone(), traits);
    bare.statement.unresolved = refusal.needs_schema_refresh;
    bare.statement.clear_values = tokens.values(range).next().is_some();
    bare.statement.params = parameters(sql, tokens, range);
    bare
}

/// Positions of the parameters with these numbers.
fn parameters_at(
    sql: &str,
    tokens: &Tokens,
    range: &Range<usize>,
    numbers: &[u32],
) -> HashSet<usize> {
    if numbers.is_empty() {
        return HashSet::new();
    }
    let number = |r: &Range<usize>| sql.get(r.start + 1..r.end)?.parse().ok();
    tokens
        .values(range)
        .filter(|(token, r)| {
            *token == Token::Param && number(r).is_some_and(|n| numbers.contains(&n))
        })
        .map(|(_, r)| r.start)
        .collect()
}

fn parameters(sql: &str, tokens: &Tokens, range: &Range<usize>) -> BTreeMap<u32, ParamUse> {
    tokens
        .values(range)
        .filter(|(token, _)| *token == Token::Param)
        .filter_map(|(_, r)| sql.get(r.start + 1..r.end)?.parse().ok())
        .map(|number| (number, ParamUse::Plain))
        .collect()
}

/// From the first token to the end, without surrounding white space and comments.
fn statement_range(sql: &str, tokens: &Tokens, raw: &RawStmt) -> Range<usize> {
    let begin = usize::try_from(raw.stmt_location).unwrap_or(0);
    let length = usize::try_from(raw.stmt_len).unwrap_or(0);
    let end = if length == 0 {
        sql.len()
    } else {
        begin + length
    };
    let (first, behind) = (tokens.next_from(begin), tokens.next_from(end));
    if first >= behind {
        return begin..end;
    }
    tokens.range(first).start..tokens.range(behind - 1).end
}

/// PostgreSQL's syntax error without the text of a literal in it. The position is that of the first
/// token that the text up to it cannot end with.
fn syntax_error(sql: &str, tokens: &Tokens, error: &pg_query::Error) -> Refusal {
    let text = match error {
        pg_query::Error::Parse(text) => text.as_str(),
        _ => return Refusal::new("54001", "the statement cannot be parsed"),
    };
    let Some((_, near)) = text.split_once(" at or near \"") else {
        let safe = if text.contains("end of input") {
            "syntax error at end of input"
        } else {
            "syntax error"
        };
        let at = i32::try_from(sql.len()).unwrap_or(-1);
        return Refusal::new("42601", safe).at(if text.contains("end of input") {
            at
        } else {
            -1
        });
    };
    let near = near.trim_end_matches('"');
    let position = error_position(sql, tokens, near);
    let index = position.and_then(|at| tokens.at(at));
    let shown = index
        .filter(|i| !tokens.holds_value(*i))
        .map(|i| &sql[tokens.range(i)]);
    let message = match shown {
        Some(token) => format!("syntax error at or near \"{token}\""),
        None => "syntax error at or near a literal".to_owned(),
    };
    Refusal::new("42601", message).at(position.and_then(|p| i32::try_from(p).ok()).unwrap_or(-1))
}

fn error_position(sql: &str, tokens: &Tokens, near: &str) -> Option<usize> {
    let all: Vec<usize> = (0..tokens.len())
        .filter(|i| sql[tokens.range(*i)].starts_with(near))
        .collect();
    if let [only] = all.as_slice() {
        return Some(tokens.range(*only).start);
    }
    let fails = |index: &usize| {
        let prefix = &sql[..tokens.range(*index).end];
        matches!(pg_query::parse(prefix, 0), Err(pg_query::Error::Parse(m)) if !m.contains("end of input"))
    };
    let first = all.partition_point(|index| !fails(index));
    all.get(first).map(|index| tokens.range(*index).start)
}
