// The whole of our own script: what htmx does not do by itself.
"use strict";
