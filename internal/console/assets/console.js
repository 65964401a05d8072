// What the console's pages do by themselves. Every page is whole without it. What it puts into a
// page comes from the server's templates, which escape every value.
'use strict';

// A tail adds records as they are applied, the newest first. While it is paused it has no
// connection; then it goes on where it was, and the server says what is no longer there.
function tail(body) {
	const most = 300; // lines on the page
	const button = document.querySelector('[data-pause]');
	const state = document.querySelector('[data-state]');
	const url = new URL(body.dataset.tail, location);
	let after = body.dataset.after, source = null;

	function open() {
		url.searchParams.set('after', after);
		source = new EventSource(url);
		source.onopen = () => { state.textContent = 'Records appear as they are applied.'; };
		source.onerror = () => {
			if (source.readyState !== EventSource.CLOSED) {
				state.textContent = 'The connection is lost; it is tried again.';
				return;
			}
			state.textContent = 'The server sends no records now; load the page again.';
			button.hidden = true;
		};
		source.addEventListener('records', (e) => {
			after = e.lastEventId;
			const more = document.createElement('template');
			more.innerHTML = e.data;
			body.prepend(more.content);
			while (body.rows.length > most) body.rows[most].remove();
			document.querySelector('[data-empty]')?.remove();
		});
	}
	button.addEventListener('click', () => {
		if (source) {
			source.close();
			source = null;
			button.textContent = 'Go on';
			state.textContent = 'Paused.';
		} else {
			button.textContent = 'Pause';
			open();
		}
	});
	button.hidden = false;
	open();
}

// A search asks again as one types, and puts the server's answer in the place of the last one. The
// button does the same without it.
function search(form) {
	const pause = 150; // milliseconds without a key
	let timer = 0, asking = null;

	async function ask() {
		asking?.abort();
		asking = new AbortController();
		const url = new URL(form.action);
		url.search = new URLSearchParams([...new FormData(form), ['ask', '1']]);
		try {
			const answer = await fetch(url, { signal: asking.signal });
			if (!answer.ok) return; // the button shows why
			const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
			document.querySelector('[data-answer]').replaceWith(document.adoptNode(page.querySelector('[data-answer]')));
			history.replaceState(null, '', url);
		} catch {
			// A later key has ended this request, or the server is gone; the button says which.
		}
	}
	form.addEventListener('input', () => {
		clearTimeout(timer);
		timer = setTimeout(ask, pause);
	});
}

const body = document.querySelector('[data-tail]');
if (body) tail(body);
const form = document.querySelector('[data-search]');
if (form) search(form);

// In dev, a page loads itself again when the process has taken a changed model. What one types into a form stays.
const run = document.body.dataset.run;
if (run) setInterval(async () => {
	if (document.hidden || document.activeElement?.matches('input, textarea, select')) return;
	try {
		const answer = await fetch('/console/run.txt');
		if (answer.ok && await answer.text() !== run) location.reload();
	} catch {
		// It begins again just now.
	}
}, 400);
