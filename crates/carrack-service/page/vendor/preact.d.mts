// What tsc takes the vendored file for; the page gives types where it imports it.
export const h: any;
export const render: any;
