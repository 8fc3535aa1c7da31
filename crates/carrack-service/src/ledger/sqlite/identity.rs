//! Users and tokens in SQLite.

use carrack_core::grant::GrantId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Done, count, document, integer, parsed};
use crate::clock::Moment;
use crate::ledger::{LedgerError, UseTaken, UserChange, UserRow, rules};
use crate::model::{Ceilings, Role, TokenRow, TokenUse, User};

const USER: &str = "SELECT name, role, account, enabled, added, password FROM user";
const TOKEN: &str = "SELECT id, user, label, scope, made, expires, used, is_session, digest FROM token";

pub fn add_user(transaction: &Transaction<'_>, row: &UserRow) -> Done<()> {
    let UserRow { user, password } = row;
    let added = transaction.execute(
        "INSERT INTO user (name, role, account, enabled, added, password) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT DO NOTHING",
        params![user.name, user.role.name(), user.account, user.enabled, user.added.0, password],
    )?;
    if added == 0 { Err(LedgerError::Taken.into()) } else { Ok(()) }
}

pub fn user(connection: &Connection, name: &str) -> Done<UserRow> {
    let found = connection.query_row(&format!("{USER} WHERE name = ?"), [name], read_user).optional()?;
    user_row(found.ok_or(LedgerError::Missing)?)
}

pub fn user_of_account(connection: &Connection, account: u32) -> Done<Option<UserRow>> {
    let found = connection.query_row(&format!("{USER} WHERE account = ?"), [account], read_user).optional()?;
    found.map(user_row).transpose()
}

pub fn users(connection: &Connection) -> Done<Vec<User>> {
    let mut statement = connection.prepare(&format!("{USER} ORDER BY name"))?;
    let rows = statement.query_map((), read_user)?;
    rows.map(|row| Ok(user_row(row?)?.user)).collect()
}

pub fn change_user(transaction: &Transaction<'_>, name: &str, change: &UserChange) -> Done<(UserRow, Vec<String>)> {
    let mut row = user(transaction, name)?;
    let ends_sessions = rules::change_user(&mut row, change)?;
    let UserRow { user: after, password } = &row;
    if user_of_account_but(transaction, after)? {
        return Err(LedgerError::Taken.into());
    }
    transaction.execute(
        "UPDATE user SET role = ?, account = ?, enabled = ?, password = ? WHERE name = ?",
        params![after.role.name(), after.account, after.enabled, password, name],
    )?;
    let ended = if ends_sessions { remove_sessions(transaction, name)? } else { Vec::new() };
    Ok((row, ended))
}

/// Whether the account of `user` is another user's.
fn user_of_account_but(connection: &Connection, user: &User) -> Done<bool> {
    let sql = "SELECT 1 FROM user WHERE account = ? AND name <> ?";
    Ok(connection.query_row(sql, params![user.account, user.name], |_| Ok(())).optional()?.is_some())
}

pub fn add_token(transaction: &Transaction<'_>, row: &TokenRow, digest: &[u8; 32]) -> Done<()> {
    user(transaction, &row.user)?;
    let scope = row.scope.as_ref().map(document).transpose()?;
    let added = transaction.execute(
        "INSERT INTO token (id, user, label, scope, digest, made, expires, used, is_session)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        params![
            row.id,
            row.user,
            row.label,
            scope,
            digest,
            row.made.0,
            row.expires.map(|time| time.0),
            row.used.map(|time| time.0),
            row.is_session
        ],
    )?;
    if added == 0 { Err(LedgerError::Taken.into()) } else { Ok(()) }
}

pub fn token(connection: &Connection, id: &str) -> Done<(TokenRow, [u8; 32], User)> {
    let found = connection.query_row(&format!("{TOKEN} WHERE id = ?"), [id], read_token).optional()?;
    let columns = found.ok_or(LedgerError::Missing)?;
    let digest = columns.digest;
    let row = token_row(columns)?;
    let user = user(connection, &row.user)?.user;
    Ok((row, digest, user))
}

pub fn tokens(connection: &Connection, user: &str) -> Done<Vec<TokenRow>> {
    let mut statement = connection.prepare(&format!("{TOKEN} WHERE user = ? ORDER BY seq DESC"))?;
    let rows = statement.query_map([user], read_token)?;
    rows.map(|row| token_row(row?)).collect()
}

/// Whether the token is known to have been shown at this minute or later, or is not known at all.
pub fn is_noted(connection: &Connection, id: &str, minute: Moment) -> Done<bool> {
    let sql = "SELECT used >= ? FROM token WHERE id = ?";
    let found: Option<Option<bool>> = connection.query_row(sql, params![minute.0, id], |row| row.get(0)).optional()?;
    Ok(found.is_none_or(|noted| noted.unwrap_or(false)))
}

pub fn note_use(transaction: &Transaction<'_>, id: &str, minute: Moment) -> Done<()> {
    transaction.execute(
        "UPDATE token SET used = ? WHERE id = ? AND (used IS NULL OR used < ?)",
        params![minute.0, id, minute.0],
    )?;
    Ok(())
}

/// What has been done by a token.
pub fn token_use(connection: &Connection, id: &str) -> Done<TokenUse> {
    let row = "SELECT entries, bytes, deletions FROM token_use WHERE token = ?";
    let read = |row: &Row<'_>| {
        Ok(TokenUse { entries: count(row.get(0)?), bytes: count(row.get(1)?), deletions: count(row.get(2)?) })
    };
    Ok(connection.query_row(row, [id], read).optional()?.unwrap_or_default())
}

/// Adds to it.
pub fn add_use(transaction: &Transaction<'_>, id: &str, more: &TokenUse) -> Done<()> {
    let TokenUse { entries, bytes, deletions } = token_use(transaction, id)?.and(more);
    transaction.execute(
        "INSERT INTO token_use (token, entries, bytes, deletions) VALUES (?, ?, ?, ?) ON CONFLICT (token) DO UPDATE
            SET entries = excluded.entries, bytes = excluded.bytes, deletions = excluded.deletions",
        params![id, integer(entries), integer(bytes), integer(deletions)],
    )?;
    Ok(())
}

pub fn count_use(
    transaction: &Transaction<'_>,
    (user, id): (&str, &str),
    more: &TokenUse,
    most: &Ceilings,
) -> Done<UseTaken> {
    let running = "SELECT id FROM task WHERE owner = ? AND state IN ('ACTIVE', 'CANCELLING')
        AND CASE WHEN json_valid(request) THEN json_extract(request, '$.token') = ? ELSE FALSE END LIMIT 1";
    if more.is_limited_by(most)
        && let Some(task) = transaction.query_row(running, [user, id], |row| row.get(0)).optional()?
    {
        return Ok(UseTaken::Running(task));
    }
    if let Some(over) = token_use(transaction, id)?.and(more).over(most) {
        return Ok(UseTaken::Over(over));
    }
    add_use(transaction, id, more)?;
    Ok(UseTaken::Taken)
}

pub fn remove_token(transaction: &Transaction<'_>, id: &str) -> Done<()> {
    transaction.execute("DELETE FROM token_use WHERE token = ?", [id])?;
    if transaction.execute("DELETE FROM token WHERE id = ?", [id])? == 0 {
        return Err(LedgerError::Missing.into());
    }
    Ok(())
}

pub fn remove_sessions(transaction: &Transaction<'_>, user: &str) -> Done<Vec<String>> {
    let sql = "DELETE FROM token WHERE user = ? AND is_session = 1 RETURNING id";
    let mut statement = transaction.prepare(sql)?;
    let removed = statement.query_map([user], |row| row.get(0))?;
    Ok(removed.collect::<Result<_, _>>()?)
}

pub fn revoke_grants(transaction: &Transaction<'_>, id: &GrantId, until: Moment, now: Moment) -> Done<()> {
    transaction.execute("DELETE FROM revoked WHERE until <= ?", [now.0])?;
    let sql = "INSERT INTO revoked (grant_id, until) VALUES (?, ?)
        ON CONFLICT DO UPDATE SET until = max(until, excluded.until)";
    transaction.execute(sql, params![id, until.0])?;
    Ok(())
}

pub fn restore_grants(transaction: &Transaction<'_>, id: &GrantId) -> Done<()> {
    transaction.execute("DELETE FROM revoked WHERE grant_id = ?", [id])?;
    Ok(())
}

pub fn revoked_grants(connection: &Connection, now: Moment) -> Done<Vec<(GrantId, Moment)>> {
    let mut statement = connection.prepare("SELECT grant_id, until FROM revoked WHERE until > ? ORDER BY grant_id")?;
    let rows = statement.query_map([now.0], |row| Ok((row.get(0)?, Moment(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A user as the columns have it.
struct UserColumns {
    name: String,
    role: String,
    account: Option<u32>,
    enabled: bool,
    added: i64,
    password: Option<String>,
}

fn read_user(row: &Row<'_>) -> rusqlite::Result<UserColumns> {
    Ok(UserColumns {
        name: row.get(0)?,
        role: row.get(1)?,
        account: row.get(2)?,
        enabled: row.get(3)?,
        added: row.get(4)?,
        password: row.get(5)?,
    })
}

fn user_row(columns: UserColumns) -> Done<UserRow> {
    let UserColumns { name, role, account, enabled, added, password } = columns;
    let unknown = |why| LedgerError::Broken(format!("user {name} cannot be read in the ledger: {why}"));
    let role = Role::parse(&role).map_err(unknown)?;
    Ok(UserRow { user: User { name, role, account, enabled, added: Moment(added) }, password })
}

/// A token as the columns have it.
struct TokenColumns {
    row: TokenRow,
    scope: Option<String>,
    digest: [u8; 32],
}

fn read_token(row: &Row<'_>) -> rusqlite::Result<TokenColumns> {
    let moment = |time: Option<i64>| time.map(Moment);
    Ok(TokenColumns {
        row: TokenRow {
            id: row.get(0)?,
            user: row.get(1)?,
            label: row.get(2)?,
            scope: None,
            made: Moment(row.get(4)?),
            expires: moment(row.get(5)?),
            used: moment(row.get(6)?),
            is_session: row.get(7)?,
        },
        scope: row.get(3)?,
        digest: row.get(8)?,
    })
}

/// A scope that cannot be read is never taken for none, which would allow everything.
fn token_row(columns: TokenColumns) -> Done<TokenRow> {
    let scope = match &columns.scope {
        Some(text) => Some(parsed(text, &format!("the scope of token {}", columns.row.id))?),
        None => None,
    };
    Ok(TokenRow { scope, ..columns.row })
}
