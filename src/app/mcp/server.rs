//! The protocol: the handshake, the list of tools, calls.

use super::lines;
use super::load::Load;
use super::state::{ServerOptions, ServerState};
use super::tools::{McpTool, TOOLS, ToolRefusal};
use super::transport::Wire;
use crate::app::calls::CallAnswer;
use crate::app::calls::arguments::schema;
use crate::app::present::{Exit, Failure, Result, clean, escaped};
use crate::support::cancel::{Cancel, Cancelled};
use crate::support::diag::{ColorChoice, nearest};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    ClientJsonRpcMessage, ClientRequest, ConstString, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, Implementation, JsonRpcMessage, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig, ServerJsonRpcMessage,
    ServerResult, ToolAnnotations,
};
use rmcp::service::{QuitReason, RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const INSTRUCTIONS: &str = "\
Caches of documents (context_*) and sessions of conversations (pact_*) below one directory; every \
path is relative to it. pact_list_sessions says which sessions there are, pact_help how selectors are written. \
Nothing is written. The first block of a result is JSON, which is also the structured content; a second block, \
if there is one, has notes as JSON, such as why it is empty, or as text beside nodes. An answer has at most `limit` bytes, \
64 KiB by default; of a longer one, the second block has {\"next\": {\"cursor\", …}}, and the same call with that `cursor` goes on. \
Errors are JSON too: {\"error\": {\"code\", \"message\", \"spans\", \"help\"}}.";

#[derive(Clone, Debug)]
struct Server {
    state: Arc<ServerState>,
    /// One permit for each running call; other calls wait in order of arrival.
    permits: Arc<Semaphore>,
    load: Load,
    dotted_names: bool,
    timeout: Option<Duration>,
    log: SyncSender<String>,
}

/// How long to wait at the end for messages that are not written yet.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a call has to end by itself after its time.
const GRACE: Duration = Duration::from_millis(100);

/// How often a client hears of a call that it wants to hear of.
const TICK: Duration = Duration::from_secs(1);

/// The most calls that run at a time, so that their answers fit in memory on any machine.
const MOST_CALLS: usize = 8;

/// Serves on standard input and output until either ends.
///
/// One thread talks to the client. Calls run on other threads, at most one per processor at a
/// time, because a call may use several threads itself.
pub(super) fn serve(state: ServerState, options: &ServerOptions) -> Result<()> {
    let failed = |error: std::io::Error| Failure::internal(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(failed)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (log, rest) = lines::log();
    let load = Load::default();
    let (input, output, end) = lines::open(load.clone()).map_err(failed)?;
    let wire = Wire::new(input, output, load.clone());
    let written = load.clone();
    let server = Server {
        log,
        state: Arc::new(state),
        permits: Arc::new(Semaphore::new(processors.min(MOST_CALLS))),
        load,
        dotted_names: options.dotted_names,
        timeout: options.timeout,
    };
    let conversation = async {
        let outcome = match server.serve(wire).await {
            Ok(running) => match running.waiting().await {
                Ok(QuitReason::JoinError(error)) | Err(error) => {
                    Err(Failure::internal(error.to_string()))
                }
                Ok(_) => Ok(()),
            },
            // The client left before it sent anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                let message = "the client did not begin with `initialize`";
                Err(Failure::plain(Exit::Input, message))
            }
            Err(error) => Err(Failure::internal(clean(&error.to_string(), 200))),
        };
        // Also errors that were said last; a client that does not read them is not waited for long.
        let _ = tokio::time::timeout(Duration::from_secs(1), written.all_written()).await;
        outcome
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = conversation => outcome,
            () = end.over() => Ok(()),
        }
    });
    // No caller waits for calls that are still running.
    runtime.shutdown_background();
    let _ = rest.recv_timeout(PATIENCE);
    outcome
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("pactql", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(|tool| {
            let name = tool.shown(self.dotted_names);
            rmcp::model::Tool::new(name, &*tool.about, Arc::new(schema(&tool.parameters)))
                .with_title(&*tool.title)
                .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = McpTool::named(&request.name) else {
            return Err(self.unknown(&request.name));
        };
        let name = request.name;
        let sent = request.arguments.unwrap_or_default();
        let state = Arc::clone(&self.state);
        let permit = tokio::select! {
            biased;
            // The client waits no longer, and the SDK sends no response.
            () = context.ct.cancelled() => return Err(ErrorData::invalid_request("cancelled", None)),
            permit = self.permit() => permit,
        };
        let called = name.clone();
        let cancel = self.timeout.map_or_else(Cancel::new, Cancel::after);
        let token = cancel.clone();
        let mut answer = tokio::task::spawn_blocking(move || {
            let answer = token.run(|| tool.call(&called, &state, sent));
            drop(permit);
            answer
        });
        let progress = context.meta.get_progress_token();
        let mut ticks = tokio::time::interval(TICK);
        let mut seconds = 0;
        let mut late = std::pin::pin!(late(self.timeout));
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                () = context.ct.cancelled() => {
                    // The thread ends soon.
                    cancel.cancel();
                    return Err(ErrorData::invalid_request("cancelled", None));
                }
                () = &mut late => break Ok(Err(Cancelled)),
                _ = ticks.tick() => if let Some(token) = progress.clone() {
                    // How much there is to do is not known before it is done.
                    let now = ProgressNotificationParam::new(token, f64::from(seconds))
                        .with_message(format!("{name}: {seconds} s"));
                    seconds += 1;
                    let _ = context.peer.notify_progress(now).await;
                },
            }
        };
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(Cancelled)) => Err(tool.refused(over(self.timeout))),
            // A panic fails this call alone; its message went to standard error.
            Err(_) => Err(tool.refused(Failure::internal(format!("{name} failed")))),
        };
        if let Err(refusal) = &answer {
            let text = refusal.failure.text(ColorChoice::Never);
            let _ = self
                .log
                .try_send(format!("{name}: {}", escaped(&text, false)));
        }
        Ok(result(answer).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method gets here if its parameters cannot be read.
        if request.method == CallToolRequestMethod::VALUE {
            let message = "a call takes the `name` of a tool and an object of `arguments`";
            return Err(ErrorData::invalid_params(message, None));
        }
        let code = ErrorCode::METHOD_NOT_FOUND;
        Err(ErrorData::new(code, clean(&request.method, 80), None))
    }
}

fn result(answer: Result<CallAnswer, ToolRefusal>) -> CallToolResult {
    match answer {
        Ok(answer) => {
            let structured_content = answer.value();
            // The result is the first block even if it is empty.
            let said = Some(answer.said).filter(|said| !said.is_empty());
            let blocks = std::iter::once(answer.result).chain(said);
            let mut result = CallToolResult::success(blocks.map(ContentBlock::text).collect());
            result.structured_content = structured_content;
            result
        }
        Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.json().to_string())]),
    }
}

/// What a message of a client is answered with that calls a tool; nothing else has an answer here.
pub(super) fn answer(
    state: &ServerState,
    message: ClientJsonRpcMessage,
) -> Option<ServerJsonRpcMessage> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let ClientRequest::CallToolRequest(call) = request.request else {
        return None;
    };
    let called = call.params.name;
    let tool = McpTool::named(&called)?;
    let sent = call.params.arguments.unwrap_or_default();
    let result = result(tool.call(&called, state, sent));
    Some(ServerJsonRpcMessage::response(
        ServerResult::CallToolResult(result),
        request.id,
    ))
}

/// Waits somewhat longer than a call may run, so that a client is answered whatever the call does.
async fn late(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout.saturating_add(GRACE)).await,
        None => std::future::pending().await,
    }
}

fn over(timeout: Option<Duration>) -> Failure {
    let timeout = timeout.unwrap_or_default();
    Failure::plain(Exit::Late, format!("not done within {timeout:?}")).with_help(
        "ask for less: one session, fewer snapshots; `--timeout` of the server is for each call",
    )
}

impl Server {
    /// Waits until a call may run: there is a processor for it, and the client reads what it gets.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.load.may_call().await;
        permit
    }

    fn unknown(&self, name: &str) -> ErrorData {
        let mut message = format!("unknown tool: {}", clean(name, 80));
        let names: Vec<String> = TOOLS
            .iter()
            .map(|tool| tool.shown(name.contains('.') || self.dotted_names))
            .collect();
        if let Some(meant) = nearest(name, names.iter().map(String::as_str)) {
            message.push_str(&format!(", did you mean {meant}?"));
        }
        ErrorData::invalid_params(message, None)
    }
}
