// What tsc takes the vendored file for; the page gives types where it imports it.
declare const htm: any;
export default htm;
