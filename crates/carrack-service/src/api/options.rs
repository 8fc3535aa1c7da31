//! The route that tells how a task can be set up.

use axum::Json;

use super::caller::Known;
use crate::model::{Problem, TaskOptionTable, task_options};

/// Lists the options of a task: what each is called, what it does and which values it takes. Every caller may ask.
#[utoipa::path(
    get, path = "/options/task", tag = "tasks",
    responses(
        (status = 200, description = "The options, in groups.", body = TaskOptionTable),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn of_tasks(_: Known) -> Json<TaskOptionTable> {
    Json(task_options())
}
