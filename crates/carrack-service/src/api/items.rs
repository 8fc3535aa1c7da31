//! What became of each item of a task: pages of JSON, or all of them as NDJSON or CSV, of any number in bounded memory.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::{PathOf, QueryOf, limit};
use super::problem::{ApiError, Done};
use super::stream::{Pieces, channel};
use crate::journal::ItemQuery;
use crate::model::{ITEM_CSV_HEADINGS, ItemState, Listed, Problem, TaskItem, Verb};

/// Items that are read and sent at once.
const BATCH: usize = 1000;

/// Which items are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ItemsQuery {
    /// States, separated by commas: `done`, `skipped`, `failed`, `deleted`.
    state: Option<String>,
    /// With `offset`: whose path contains this, in any case; with `*` or `?`, whose whole path is like it.
    filter: Option<String>,
    /// Rows from this place in the list on, with the number of all rows: a `Windowed` in place of a page.
    offset: Option<u64>,
    /// Rows of a page, 1 to 1000; 100 where it is left out. Without meaning for NDJSON and CSV.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    Lines,
    Csv,
}

/// The first of the forms that the caller names.
fn form(headers: &HeaderMap) -> Form {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let named = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let known = named.filter_map(|kind| match kind {
        "application/x-ndjson" => Some(Form::Lines),
        "text/csv" => Some(Form::Csv),
        "application/json" => Some(Form::Page),
        _ => None,
    });
    known.into_iter().next().unwrap_or(Form::Page)
}

/// Lists items of a task, failed ones first; with `Accept: application/x-ndjson` or `text/csv` all of them at once.
#[utoipa::path(
    get, path = "/tasks/{id}/items", tag = "tasks",
    params(("id" = String, Path, description = "The task."), ItemsQuery),
    responses(
        (status = 200, description = "One page, or all; with `offset`, a `Windowed`.", content((Listed<TaskItem> = "application/json"),
            (String = "application/x-ndjson"), (String = "text/csv"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ItemsQuery>,
    headers: HeaderMap,
) -> Done<Response> {
    let limit = limit(query.limit)?;
    let form = form(&headers);
    let parse = |word: &str| ItemState::parse(word.trim());
    let states = query.state.as_deref().map(|text| text.split(',').map(parse).collect::<Result<Vec<_>, _>>());
    let states = states.transpose().map_err(|why| ApiError::malformed(format!("state: {why}")))?.unwrap_or_default();
    let (caller, task, wanted) = (Arc::clone(&known.caller), id.clone(), states.clone());
    if let Some(offset) = query.offset {
        if query.cursor.is_some() || form != Form::Page {
            return Err(ApiError::malformed("offset: not together with cursor, NDJSON or CSV"));
        }
        let wanted = ItemQuery { states, text: query.filter.filter(|text| !text.is_empty()) };
        let windowed = api.run(move |api| {
            api.task_of(&caller, &task, Verb::View)?;
            let windowed = api.backend.item_window(&task, &wanted, offset, limit);
            windowed.map_err(|why| ApiError::internal(format!("items of task {task}: {why}")))
        });
        return windowed.await.map(|windowed| Json(windowed).into_response());
    }
    if query.filter.is_some() {
        return Err(ApiError::malformed("filter: with offset"));
    }
    let first_limit = if form == Form::Page { limit } else { BATCH };
    let first = api.run(move |api| {
        api.task_of(&caller, &task, Verb::View)?;
        page(api, &task, &wanted, query.cursor.as_deref(), first_limit)
    });
    let first = first.await?;
    if form == Form::Page {
        return Ok(Json(first).into_response());
    }
    let place = api.stream(&known, 1)?;
    let (pieces, body) = channel();
    tokio::spawn(async move {
        let _place = place;
        let source = Source { api, known, task: id, states, form };
        source.send(&pieces, first).await;
    });
    let kind = if form == Form::Lines { "application/x-ndjson" } else { "text/csv; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

fn page(api: &Api, task: &str, states: &[ItemState], cursor: Option<&str>, limit: usize) -> Done<Listed<TaskItem>> {
    api.backend.items(task, states, cursor, limit).map_err(|fault| match fault {
        Some(why) => ApiError::internal(format!("items of task {task}: {why}")),
        None => ApiError::malformed("cursor: no page has given it"),
    })
}

/// All items of one request.
struct Source {
    api: Arc<Api>,
    known: Known,
    task: String,
    states: Vec<ItemState>,
    form: Form,
}

impl Source {
    async fn send(&self, pieces: &Pieces, first: Listed<TaskItem>) {
        let mut listed = first;
        let mut text = match self.form {
            Form::Csv => format!("{ITEM_CSV_HEADINGS}\r\n"),
            Form::Lines | Form::Page => String::new(),
        };
        loop {
            for item in &listed.items {
                self.write(&mut text, item);
            }
            if !pieces.send(std::mem::take(&mut text)).await {
                return;
            }
            let Some(cursor) = listed.next else { return };
            if *self.api.stopping.borrow() || !self.api.is_still_known(&self.known.caller).await {
                return;
            }
            let (task, states) = (self.task.clone(), self.states.clone());
            let next = self.api.run(move |api| page(api, &task, &states, Some(&cursor), BATCH)).await;
            match next {
                Ok(next) => listed = next,
                // The reader sees an answer that is cut: an end without its last chunk cannot be told from here, so the
                // line says it.
                Err(error) => {
                    if self.form == Form::Lines
                        && let Ok(line) = serde_json::to_string(&error.problem())
                    {
                        pieces.send(format!("{line}\n")).await;
                    }
                    return;
                }
            }
        }
    }

    fn write(&self, text: &mut String, item: &TaskItem) {
        if self.form == Form::Lines {
            if let Ok(line) = serde_json::to_string(item) {
                text.push_str(&line);
                text.push('\n');
            }
            return;
        }
        text.push_str(&item.csv());
        text.push_str("\r\n");
    }
}
