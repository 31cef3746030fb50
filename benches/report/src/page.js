// What a check reads: figures without a drawing, and whether the page is wider than its window.
(() => {
  const figures = [...document.querySelectorAll("figure")];
  const isEmpty = (figure) => {
    const marks = [...figure.querySelectorAll(":scope > svg g path")];
    return !marks.some((mark) => { const box = mark.getBBox(); return box.width > 0 || box.height > 0; });
  };
  const root = document.documentElement;
  root.dataset.figures = figures.length;
  root.dataset.empty = figures.filter(isEmpty).map((figure) => figure.id).join(" ");
  root.dataset.overflow = root.scrollWidth - root.clientWidth;
})();
