'use strict';
// Names in what arrives come from others: everything is set as text, nothing as markup.

const WINDOW = 5 * 60 * 1000;
const EVENTS_KEPT = 300;
const SVG = 'http://www.w3.org/2000/svg';
const STAGES = ['observed', 'decided', 'killed', 'first_release', 'released', 'cleanup'];
const ROUTINE = ['timer', 'deadline'];

const state = { status: {}, events: new Map(), samples: [], wakes: [], skew: 0 };
const $ = id => document.getElementById(id);

// Elements

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ''));
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const drawn = new Map();
// Draws a part anew where what it shows has changed: a selection in it, and how far it is scrolled, stay otherwise.
function draw(id, data, build) {
  const key = JSON.stringify(data ?? null);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  $(id).replaceChildren(...[build()].flat());
}

function table(head, rows, attributes) {
  const cells = (tag, row) => row.map(cell => h(tag, { class: cell.class }, cell.text !== undefined ? cell.text : cell));
  return h('div', { class: 'scroll' }, h('table', attributes,
    h('thead', {}, h('tr', {}, cells('th', head))),
    h('tbody', {}, rows.map(row => h('tr', { class: row.class, 'data-pod': row.pod }, cells('td', row.cells))))));
}
const number = text => ({ class: 'number', text });
const empty = text => h('p', { class: 'empty' }, text);

// Texts

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; Math.abs(value) >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return (unit === 0 ? Math.round(value) : value.toFixed(value < 100 ? 1 : 0)) + ' ' + units[unit];
}
const amount = (unit, value) => unit === 'bytes' ? bytes(value) : Math.round(value).toLocaleString('en');
function duration(us) {
  if (us < 1000) return us + ' µs';
  if (us < 1e6) return (us / 1000).toFixed(us < 1e4 ? 2 : us < 1e5 ? 1 : 0) + ' ms';
  return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + ' s';
}
function span(seconds) {
  if (seconds < 100) return Math.round(seconds) + ' s';
  if (seconds < 3600) return Math.round(seconds / 60) + ' min';
  if (seconds < 86400) return Math.floor(seconds / 3600) + ' h ' + Math.round(seconds % 3600 / 60) + ' min';
  return Math.floor(seconds / 86400) + ' d ' + Math.floor(seconds % 86400 / 3600) + ' h';
}
const clock = time => new Date(time).toLocaleTimeString('en-GB');
const pod_name = pod => pod ? (pod.namespace || '') + '/' + (pod.name || '') : '';
const seconds_of = text => text ? parseFloat(text) : 0;
const now = () => Date.now() - state.skew;  // by the node's clock

// What arrives

function take_status(status) {
  const before = state.status;
  state.status = status;
  const signals = {};
  for (const signal of status.signals || [])
    if (signal.available !== undefined) signals[signal.signal] = Number(signal.available);
  state.samples.push({ time: now(), signals });
  const counts = new Map((before.wakeSources || []).map(source => [source.name, source.wakeUps]));
  for (const source of status.wakeSources || [])
    if (source.lastWake && before.wakeSources && counts.get(source.name) !== source.wakeUps)
      state.wakes.push({ time: Date.parse(source.lastWake), source: source.name });
  const begin = now() - WINDOW;
  while (state.samples.length && state.samples[0].time < begin - 2000) state.samples.shift();
  while (state.wakes.length && state.wakes[0].time < begin) state.wakes.shift();
}

function take_event(event) {
  state.events.set(Number(event.sequence || 0), event);
  if (state.events.size > EVENTS_KEPT) state.events.delete(state.events.keys().next().value);
}

function keep_samples() {
  try { sessionStorage.setItem('samples', JSON.stringify(state.samples)); } catch (error) { /* full, or not allowed */ }
}
function restore_samples() {
  try { state.samples = JSON.parse(sessionStorage.getItem('samples')) || []; } catch (error) { state.samples = []; }
}

// Parts of the page

const x_of = time => 300 * (1 - (now() - time) / WINDOW);
const eviction_starts = () => [...state.events.values()].filter(event => event.kind === 'EVICTION_INTENDED');

function threshold_of(signal, hard) {
  return (signal.thresholds || []).find(status => (seconds_of(status.threshold.gracePeriod) === 0) === hard);
}

function chart(signal) {
  const height = 72;
  const points = state.samples.filter(sample => sample.signals[signal.signal] !== undefined)
    .map(sample => [x_of(sample.time), sample.signals[signal.signal]]);
  const levels = (signal.thresholds || []).map(status => Number(status.threshold.resolved || 0));
  const top = Math.max(1, ...points.map(point => point[1]), ...levels.map(level => level * 1.3)) * 1.06;
  const y = value => (height * (1 - Math.max(0, value) / top)).toFixed(2);
  const path = points.map(([x, value], i) => (i ? 'L' : 'M') + x.toFixed(2) + ' ' + y(value)).join('');
  const line = (name, value) => s('line', { class: name, x1: 0, x2: 300, y1: y(value), y2: y(value) });
  return s('svg', { class: 'chart', viewBox: '0 0 300 ' + height, preserveAspectRatio: 'none', role: 'img',
                    'aria-label': signal.signal + ' over the last 5 minutes' },
    [60, 120, 180, 240].map(x => s('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: height })),
    points.length ? s('path', { class: 'area', d: path + `L${points.at(-1)[0].toFixed(2)} ${height}L${points[0][0].toFixed(2)} ${height}Z` }) : '',
    points.length ? s('path', { class: 'curve', d: path }) : '',
    (signal.thresholds || []).map(status =>
      line(seconds_of(status.threshold.gracePeriod) ? 'soft' : 'hard', Number(status.threshold.resolved || 0))),
    eviction_starts().filter(event => event.signal === signal.signal && x_of(Date.parse(event.time)) >= 0).map(event => {
      const x = x_of(Date.parse(event.time));
      return s('line', { class: 'evicted', x1: x, x2: x, y1: 0, y2: height });
    }));
}

function rate(signal) {
  const per_second = Number(signal.fillRate || 0);
  const hard = threshold_of(signal, true) || threshold_of(signal, false);
  if (Math.abs(per_second) < 1) return h('div', { class: 'rate' });
  const left = hard ? (Number(signal.available || 0) - Number(hard.threshold.resolved || 0)) / per_second : Infinity;
  const text = (per_second > 0 ? '▼ ' : '▲ ') + amount(signal.unit, Math.abs(per_second)) + '/s' +
    (per_second > 0 && left > 0 && left < 86400 ? ' · ' + span(left) + ' left' : '');
  return h('div', { class: 'rate' + (left > 0 && left < 30 ? ' urgent' : '') }, text);
}

function legend(signal) {
  return h('div', { class: 'legend' }, (signal.thresholds || []).map(status => {
    const grace = seconds_of(status.threshold.gracePeriod);
    const level = amount(signal.unit, Number(status.threshold.resolved || 0));
    return h('span', { class: grace ? 'soft' : 'hard' }, grace ? `soft, ${level} for ${span(grace)}` : `hard, ${level}`);
  }));
}

function signal_card(signal) {
  const available = Number(signal.available || 0);
  const levels = (signal.thresholds || []).map(status => Number(status.threshold.resolved || 0));
  const met = (signal.thresholds || []).some(status => status.metSince);
  const near = levels.some(level => level > 0 && available < level * 1.25);
  const known = signal.capacity !== undefined;
  return h('article', { class: 'card signal' + (met ? ' met' : near && known ? ' near' : ''), 'data-signal': signal.signal },
    h('h3', {}, signal.signal),
    known ? h('div', { class: 'amount' }, amount(signal.unit, available), ' ',
              h('small', {}, 'of ' + amount(signal.unit, Number(signal.capacity))))
          : h('div', { class: 'amount' }, h('small', {}, 'not measured')),
    rate(signal), chart(signal), legend(signal));
}

function draw_signals() {
  const signals = [...(state.status.signals || [])];
  signals.sort((a, b) => (b.thresholds ? 1 : 0) - (a.thresholds ? 1 : 0));
  $('signals').replaceChildren(...signals.map(signal_card));
}

function lane(name, marks) {
  return h('div', { class: 'lane' }, h('span', {}, name),
    s('svg', { viewBox: '0 0 300 26', preserveAspectRatio: 'none', role: 'img', 'aria-label': name },
      s('line', { class: 'grid', x1: 0, x2: 300, y1: 25.5, y2: 25.5 }), marks));
}

function mark(name, time, title) {
  const x = x_of(time);
  return x < 0 ? '' : s('line', { class: name, x1: x, x2: x, y1: 4, y2: 25 }, s('title', {}, title));
}

function draw_timeline() {
  const events = [...state.events.values()];
  // Those before the page was opened are known where something came of them.
  const told = eviction_starts().filter(event => event.wake).map(event =>
    ({ source: event.wake.source, time: Date.parse(event.time) - Number((event.stages || {}).decided || 0) / 1000 }));
  const wakes = [...state.wakes, ...told].map(wake =>
    mark('wake' + (ROUTINE.includes(wake.source) ? ' routine' : ''), wake.time, clock(wake.time) + ' ' + wake.source));
  const crossings = events.filter(event => event.kind === 'THRESHOLD_CROSSED')
    .map(event => mark('crossing', Date.parse(event.time), clock(event.time) + ' ' + (event.message || '')));
  const bars = evictions().map(eviction => {
    const begin = Date.parse(eviction.first.time);
    const x = x_of(begin);
    const end = begin + Math.max(...Object.values(eviction.stages), 0) / 1000;
    if (x_of(end) < 0) return '';
    return s('rect', { class: 'eviction', x, width: Math.max(2, x_of(end) - x), y: 4, height: 21 },
      s('title', {}, clock(begin) + ' ' + pod_name(eviction.first.pod)));
  });
  $('timeline').replaceChildren(lane('wake-ups', wakes), lane('crossings', crossings), lane('evictions', bars),
    h('div', { class: 'axis' }, h('span', {}, '5 min ago'), h('span', {}, 'now')));
}

// Each with its first event, all its stages, and how it ended; the newest first.
function evictions() {
  const found = new Map();
  for (const event of state.events.values()) {
    if (!event.evictionId) continue;
    if (!found.has(event.evictionId)) found.set(event.evictionId, { id: event.evictionId, first: event, stages: {} });
    const eviction = found.get(event.evictionId);
    for (const [stage, time] of Object.entries(event.stages || {})) eviction.stages[stage] = Number(time);
    if (event.kind === 'CLEANUP_DONE') eviction.end = event.cleanupDone && event.cleanupDone.timedOut ? 'not cleaned up' : 'done';
    if (event.kind === 'EVICTION_FAILED') eviction.failure = event.message;
    if (event.kind === 'EXPLAINED') eviction.explained = event.message;
  }
  return [...found.values()].reverse();
}

function stage_rows(stages) {
  const names = Object.keys(stages).sort((a, b) => stages[a] - stages[b] || STAGES.indexOf(a) - STAGES.indexOf(b));
  // Stages lie between 0.1 ms and a minute: by their logarithm.
  const part = us => 100 * Math.min(1, Math.max(0.02, Math.log10(Math.max(us, 10) / 10) / 6));
  return h('ol', { class: 'stages' }, names.map(name => {
    const bar = h('i');
    bar.style.width = part(stages[name]).toFixed(1) + '%';
    return h('li', { 'data-stage': name, 'data-us': stages[name] }, h('span', {}, name.replace('_', ' ')),
      h('span', { class: 'bar' }, bar), h('span', { class: 'time' }, duration(stages[name])));
  }));
}

function draw_evictions() {
  const list = evictions().slice(0, 8);
  draw('evictions', list, () => list.length === 0 ? empty('None that is still remembered.') : list.map(({ id, first, stages, end, failure, explained }) => {
    const intent = first.evictionIntended || {};
    const words = [first.signal, intent.reason, intent.dryRun ? 'dry run' : '', clock(first.time), first.wake ? 'woken by ' + first.wake.source : ''];
    return h('article', { class: 'eviction', 'data-eviction': id, 'data-pod': pod_name(first.pod), 'data-signal': first.signal },
      h('h3', {}, pod_name(first.pod), ' ', h('span', { class: 'pill' + (end === 'done' ? '' : end ? ' bad' : ' warn') }, end || 'under way')),
      h('p', {}, words.filter(Boolean).join(' · ')),
      explained ? h('p', { class: 'explained' }, explained) : '',
      failure ? h('p', { class: 'failed' }, failure) : '', stage_rows(stages));
  }));
}

function draw_ranking() {
  const last = eviction_starts().at(-1);
  draw('ranking', last, () => {
    if (!last) return empty('Nobody was ranked yet.');
    const intent = last.evictionIntended || {};
    const rows = (intent.ranking || []).map((ranked, place) => {
      const victim = ranked.pod && ranked.pod.uid === last.pod.uid;
      const usage = (ranked.atMost ? '≤ ' : '') + amount((intent.threshold || {}).unit, Number(ranked.usage || 0));
      return { class: victim ? 'victim' : ranked.critical ? 'protected' : undefined, pod: pod_name(ranked.pod),
        cells: [number(place + 1), { class: 'name', text: pod_name(ranked.pod) }, number(usage),
          number(ranked.request ? bytes(Number(ranked.request)) : '–'), number(ranked.priority || 0),
          victim ? 'evicted' : ranked.critical ? 'critical' : ''] };
    });
    const more = Number(intent.candidates || 0) - rows.length;
    return [table([number('#'), 'pod', number('usage'), number('request'), number('priority'), ''], rows),
      more > 0 ? h('p', { class: 'empty' }, `and ${more} more`) : ''].filter(Boolean);
  });
}

function draw_latencies() {
  const stages = (state.status.latencies || []).map(stage => ({ cells: [{ class: 'name', text: stage.signal },
    stage.name.replace('_', ' '), number(stage.count), number(duration(Number(stage.medianUs || 0))),
    number(duration(Number(stage.p90Us || 0))), number(duration(Number(stage.maxUs || 0)))] }));
  draw('latencies', stages, () => stages.length === 0 ? empty('No eviction yet.') :
    table(['signal', 'stage', number('count'), number('median'), number('p90'), number('longest')], stages));
}

function draw_sources() {
  const rows = (state.status.wakeSources || []).map(source => ({ cells: [{ class: 'name', text: source.name },
    { class: (source.state || '').startsWith('failed') ? 'failed name' : 'name', text: source.state || '' },
    number(source.wakeUps || 0), number(source.lastWake ? clock(source.lastWake) : 'never')] }));
  draw('sources', rows, () => table(['source', 'state', number('wake-ups'), number('last')], rows));
}

function draw_events() {
  const list = [...state.events.values()].reverse().slice(0, 100);
  draw('events', list.map(event => event.sequence), () => list.length === 0 ? empty('None yet.') :
    h('div', { class: 'tall' }, table(['time', 'kind', 'message'], list.map(event => ({ cells: [
      { class: 'nowrap muted', text: clock(event.time) }, { class: 'nowrap', text: event.kind || '' },
      { class: 'name', text: event.message || '' }] })), { class: 'events' })));
}

function draw_head() {
  const status = state.status;
  draw('version', status.version, () => document.createTextNode(status.version || ''));
  const runtime = status.runtime || {};
  const fact = (name, value) => h('span', {}, name + ' ', h('b', {}, String(value)));
  const up = status.started ? span((now() - Date.parse(status.started)) / 1000) : '';
  draw('facts', [runtime, status.pods, status.evictions, status.passes, up], () => [
    fact('pods', status.pods || 0), fact('evictions', status.evictions || 0), fact('passes', status.passes || 0),
    fact('runtime', runtime.connected ? `${runtime.name || ''} ${runtime.version || ''}` : 'not connected'), up ? fact('up', up) : ''].filter(Boolean));
  const pills = [...(status.conditions || []).map(condition =>
    ({ name: condition.type + (condition.status ? '' : ': no'), class: condition.status ? 'pill bad' : 'pill', type: condition.type, on: !!condition.status }))];
  if (status.dryRun) pills.push({ name: 'dry run: nothing is evicted', class: 'pill warn' });
  for (const text of [...(status.warnings || []), ...(status.staged || [])]) pills.push({ name: text, class: 'pill warn' });
  draw('conditions', pills, () => pills.map(pill => h('span', { class: pill.class, 'data-condition': pill.type, 'data-on': pill.type && String(pill.on) }, pill.name)));
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const part of [draw_head, draw_signals, draw_timeline, draw_evictions, draw_ranking, draw_latencies, draw_sources, draw_events]) part();
  });
}

// The stream

function connection(name, text) {
  $('connection').className = 'connection ' + name;
  $('connection').textContent = text;
}

function follow() {
  const stream = new EventSource('/events');
  stream.addEventListener('snapshot', message => {
    const { status, events } = JSON.parse(message.data);
    state.events.clear();
    events.forEach(take_event);
    take_status(status);
    connection('live', 'live');
    redraw();
  });
  stream.addEventListener('status', message => {
    take_status(JSON.parse(message.data));
    keep_samples();
    redraw();
  });
  stream.addEventListener('event', message => {
    const event = JSON.parse(message.data);
    // It has just happened: so much do the two clocks differ.
    const skew = Date.now() - Date.parse(event.time);
    if (!state.events.has(Number(event.sequence)) && Math.abs(skew - state.skew) > 1500) state.skew = skew;
    take_event(event);
    redraw();
  });
  stream.onerror = () => {
    connection('lost', 'no connection; trying again');
    // Turned away, as by a server that has as many pages as it takes: then the browser gives up.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

restore_samples();
follow();
